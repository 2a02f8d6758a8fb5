import type { Clock, SkeinError, IdSource } from '@skein/base'
import type { Timers, RuntimeLogger } from '@skein/runtime'
import type { ApiErrorCode } from '../operations/http-error.ts'
import type { OpenStreams } from '../streams/open-streams.ts'
import type { StudioSessions } from '../studio/studio-sessions.ts'
import type { StudioFiles } from '../studio/studio-files.ts'
import type { Auth } from '../auth/authenticate.ts'
import type { Principal } from '../operations/principal.ts'
import type { OperationRoute } from '../operations/operation.ts'
import { Metrics } from './metrics.ts'

/** The services that all operations share. */
export interface Services {
  readonly clock: Clock
  readonly timers: Timers
  readonly limits: HttpLimits
  readonly streams: OpenStreams
  readonly metrics: Metrics
  readonly prefix: string
  /** Whether chats show text of agents whose answers are checked (governed agents) only after the checks. */
  readonly holdsGoverned: boolean
  /** The agent whose A2A card describes the whole server, and the address of the server in such cards. */
  readonly a2a: { readonly agent?: string; readonly url?: string }
  /** The sessions of people who are signed in to Studio, and whether a message may choose another model. */
  readonly studio: {
    readonly sessions: StudioSessions
    readonly isPlayground: boolean
    /** Whether requests need a key or a token. */
    readonly needsKey: boolean
  }
  readonly openapi: () => object
  /** Reports an error to the operator when no client will receive it. */
  readonly report: (error: unknown) => void
  /** Returns the error if the client may read it and can act on it; undefined for all other errors. */
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
  /** The maximum number of threads whose events one stream of a tree of threads reads. Default 1000. */
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

/** Who may call the server, from where, and with which limits. */
export interface HttpOptions {
  /** Who may call. `'none'` accepts every request that reaches the address; use it only for this machine. */
  readonly auth: Auth
  /** Put before every path, e.g. `/api`. Default none. */
  readonly prefix?: string
  /**
   * Host names accepted in requests, besides those of this machine. `'*'` accepts any; use it only behind a
   * proxy that checks them.
   */
  readonly allowedHosts?: readonly string[] | '*'
  /** Origins of other sites whose pages may call the server. Default none. */
  readonly cors?: { readonly origins: readonly string[] }
  readonly limits?: Partial<HttpLimits>
  /**
   * Returns the address of the client as a trusted proxy reports it. Default: the address of the connection.
   */
  readonly clientAddress?: (request: Request) => string | undefined
  /**
   * Whether chats show text of agents whose answers are checked (governed agents) only after it has passed all
   * checks. By default it is shown immediately and marked as unverified.
   */
  readonly chat?: { readonly hold?: boolean }
  /**
   * The agent cards of A2A. `agent`: whose card is at `/.well-known/agent-card.json`; default the only agent.
   * `url`: the address of the server that cards name, with the prefix; default that of the request.
   * `isPublic`: whether cards can be read without a key. Default false.
   */
  readonly a2a?: { readonly agent?: string; readonly url?: string; readonly isPublic?: boolean }
  /**
   * The files of Studio: `studioFiles()` of `@skein/studio`. They are served under `/studio/`, and browsers
   * are sent there from `/`. The files need no key; with `auth`, people sign in with theirs.
   */
  readonly studio?: StudioFiles
  /**
   * Whether a client may choose another model and other settings for the answer to one message, e.g. to compare
   * models. Default false; the command `skein dev` sets it.
   */
  readonly playground?: boolean
  /**
   * Called before our routes, e.g. to serve pages. Return a `Response`, or undefined to continue with our
   * routes. Host and origin are already checked at this point, the key is not.
   */
  readonly before?: (request: Request) => Response | undefined | Promise<Response | undefined>
  /** Additional routes. */
  readonly routes?: readonly OperationRoute[]
  /** The principal of all requests when `auth` is `'none'`. Default: tenant `default`, all scopes. */
  readonly local?: Principal
  /** Called with every error whose message is not sent to the client; the client receives only the id. */
  readonly onError?: (error: unknown, id: string) => void
  /**
   * Logs each request (method, path without query, status, milliseconds until the answer begins, request id,
   * tenant) and each unexpected error. A logger of pino fits. Default: none.
   */
  readonly logger?: RuntimeLogger
  /** The level of requests that succeed. Default `info`. */
  readonly requestLogLevel?: 'debug' | 'info'
  readonly clock?: Clock
  readonly ids?: IdSource
  readonly timers?: Timers
}

export interface RouteCounts {
  readonly byStatus: Map<number, number>
  readonly buckets: number[]
  seconds: number
  total: number
}
