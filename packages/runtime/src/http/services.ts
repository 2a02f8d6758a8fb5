import type { Clock } from '@skein/base'
import type { Metrics } from './metrics.ts'
import type { OpenStreams } from './stream/event-stream.ts'
import type { Timers } from '../dispatch/dispatcher.ts'

/** What operations share. */
export interface Services {
  readonly clock: Clock
  readonly timers: Timers
  readonly limits: HttpLimits
  readonly streams: OpenStreams
  readonly metrics: Metrics
  readonly prefix: string
  /** Whether chats show words of governed agents only once they are delivered. */
  readonly holdsGoverned: boolean
  readonly openapi: () => object
  /** Reports an error to the operator that no client gets to see. */
  readonly report: (error: unknown) => void
  /** Whether the server is shutting down. */
  readonly isClosing: () => boolean
}

/** How much one request, client or address may use. */
export interface HttpLimits {
  /** Of a JSON body. Default 1 MiB. */
  readonly maxBodyBytes: number
  /** Of a file. Default 32 MiB. */
  readonly maxFileBytes: number
  /** Of an import. Default 64 MiB. */
  readonly maxImportBytes: number
  /** Default 64. */
  readonly maxJsonDepth: number
  /** Default 8192. */
  readonly maxUrlLength: number
  /** For a whole body to arrive. Default 30 s. */
  readonly bodyTimeoutMs: number
  /** Default 6000. */
  readonly requestsPerMinute: number
  /** Also without a key. Default 6000. */
  readonly requestsPerMinutePerAddress: number
  /** Default 5000. */
  readonly maxStreams: number
  /** Default 500. */
  readonly maxStreamsPerClient: number
  /** Bytes that wait for a client that does not read; with a full buffer it is cut off. Default 256 KiB. */
  readonly streamBufferBytes: number
  /** A comment on a quiet stream. Default 15 s. */
  readonly heartbeatMs: number
  /** Threads that one tree stream follows. Default 1000. */
  readonly maxTreeThreads: number
}

/** The limits that hold where options say nothing else. */
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
