import type { Clock, SkeinError } from '@skein/base'
import type { ApiErrorCode } from '../operations/http-error.ts'
import type { Metrics } from './metrics.ts'
import type { OpenStreams } from './stream/event-stream.ts'
import type { StudioSessions } from './studio.ts'
import type { Timers } from '../dispatch/dispatcher.ts'

/** The services that all operations share. */
export interface Services {
  readonly clock: Clock
  readonly timers: Timers
  readonly limits: HttpLimits
  readonly streams: OpenStreams
  readonly metrics: Metrics
  readonly prefix: string
  /** Whether chats show text of governed agents only after delivery. */
  readonly holdsGoverned: boolean
  /** The agent of the server's own A2A card, and the address that cards name. */
  readonly a2a: { readonly agent?: string; readonly url?: string }
  /** The sessions of people at the page, and whether a run may have another model than its agent's. */
  readonly studio: { readonly sessions: StudioSessions; readonly isPlayground: boolean }
  readonly openapi: () => object
  /** Reports an error to the operator when no client will receive it. */
  readonly report: (error: unknown) => void
  /** Returns the error if it is the client's to read and to mend; undefined for all other errors. */
  readonly clientError: (error: unknown) => (SkeinError & { code: ApiErrorCode }) | undefined
  /** Whether the server is shutting down. */
  readonly isClosing: () => boolean
}

/** How much one request, client or address may use. */
export interface HttpLimits {
  /** The maximum size of a JSON body. Default 1 MiB. */
  readonly maxBodyBytes: number
  /** The maximum size of a file. Default 32 MiB. */
  readonly maxFileBytes: number
  /** The maximum size of an import. Default 64 MiB. */
  readonly maxImportBytes: number
  /** The maximum depth of a JSON body. Default 64. */
  readonly maxJsonDepth: number
  /** Default 8192. */
  readonly maxUrlLength: number
  /** The maximum time for a whole body to arrive. Default 30 s. */
  readonly bodyTimeoutMs: number
  /** The maximum number of requests of one client. Default 6000. */
  readonly requestsPerMinute: number
  /** The maximum number of requests from one address, including those without a key. Default 6000. */
  readonly requestsPerMinutePerAddress: number
  /** The maximum number of open streams of all clients together. Default 5000. */
  readonly maxStreams: number
  /** Default 500. */
  readonly maxStreamsPerClient: number
  /**
   * The maximum bytes that are buffered for a slow client. If its buffer stays full, the client is
   * disconnected. Default 256 KiB.
   */
  readonly streamBufferBytes: number
  /** How often a comment is sent on a quiet stream. Default 15 s. */
  readonly heartbeatMs: number
  /** The maximum number of threads that one tree stream follows. Default 1000. */
  readonly maxTreeThreads: number
}

/** The default limits. */
export const DEFAULT_LIMITS: HttpLimits = {
  maxBodyBytes: 1024 * 1024,
  maxFileBytes: 32 * 1024 * 1024,
  maxImportBytes: 64 * 1024 * 1024,
  maxJsonDepth: 64,
  maxUrlLength: 8192,
  bodyTimeoutMs: 30_000,
  requestsPerMinute: 6000,
  requestsPerMinutePerAddress: 6000,
  maxStreams: 5000,
  maxStreamsPerClient: 500,
  streamBufferBytes: 256 * 1024,
  heartbeatMs: 15_000,
  maxTreeThreads: 1000,
}
