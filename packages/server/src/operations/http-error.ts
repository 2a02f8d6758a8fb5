import { SkeinError } from '@skein/base'
import type { SchemaProblem } from '@skein/base/shape'
import type { RuntimeErrorCode, StoreErrorCode } from '@skein/runtime'

/** The codes of errors that the HTTP layer itself raises. */
export type HttpErrorCode =
  | 'ROUTE_NOT_FOUND'
  | 'METHOD_NOT_ALLOWED'
  | 'UNAUTHENTICATED'
  | 'SCOPE_MISSING'
  | 'HOST_NOT_ALLOWED'
  | 'ORIGIN_NOT_ALLOWED'
  | 'BODY_TOO_LARGE'
  | 'BODY_INVALID'
  | 'BODY_TIMEOUT'
  | 'MEDIA_TYPE_UNSUPPORTED'
  | 'URL_TOO_LONG'
  | 'RATE_LIMITED'
  | 'STREAM_LIMIT'
  | 'VALUE_NOT_FOUND'
  | 'TOOL_NOT_FOUND'
  | 'PLAYGROUND_OFF'
  | 'HISTORY_FIXED'
  | 'APPROVAL_REQUIRED'
  | 'RESPONSE_INVALID'
  | 'NOT_READY'
  | 'INTERNAL'

/** Every code that an error response can contain. */
export type ApiErrorCode = HttpErrorCode | RuntimeErrorCode | StoreErrorCode

/** The HTTP status of each error code; defined only here. */
export const STATUS: Readonly<Record<ApiErrorCode, number>> = {
  ROUTE_NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  UNAUTHENTICATED: 401,
  SCOPE_MISSING: 403,
  HOST_NOT_ALLOWED: 403,
  ORIGIN_NOT_ALLOWED: 403,
  BODY_TOO_LARGE: 413,
  BODY_INVALID: 400,
  BODY_TIMEOUT: 408,
  MEDIA_TYPE_UNSUPPORTED: 415,
  URL_TOO_LONG: 414,
  RATE_LIMITED: 429,
  STREAM_LIMIT: 429,
  VALUE_NOT_FOUND: 404,
  TOOL_NOT_FOUND: 404,
  PLAYGROUND_OFF: 403,
  HISTORY_FIXED: 409,
  APPROVAL_REQUIRED: 409,
  RESPONSE_INVALID: 502,
  NOT_READY: 503,
  INTERNAL: 500,

  DEFINITION_INVALID: 422,
  AGENT_NOT_FOUND: 404,
  THREAD_NOT_FOUND: 404,
  THREAD_TERMINATED: 409,
  THREAD_BUSY: 409,
  MESSAGE_NOT_FOUND: 404,
  FILE_NOT_FOUND: 404,
  FILE_PATH_INVALID: 400,
  FILE_TOO_LARGE: 413,
  VALUE_INVALID: 400,
  ENV_MISSING: 422,
  ENV_INVALID: 400,
  EFFECT_NOT_FOUND: 404,
  EFFECT_INVALID: 400,
  EFFECT_UNKNOWN: 500,
  HOOK_ANSWER: 500,
  INTERRUPT_NOT_FOUND: 404,
  ALREADY_ANSWERED: 409,
  GRANT_NOT_FOUND: 404,
  ANSWER_INVALID: 400,
  REQUEST_NOT_FOUND: 404,
  REQUEST_EXPIRED: 410,
  VARIABLES_MISSING: 422,
  TOOL_NOT_ALLOWED: 403,
  INPUT_INVALID: 400,
  LOG_NOT_FOUND: 404,
  LOG_VERSION: 409,
  KEY_INVALID: 500,
  NOT_JSON: 400,
  BUDGET_EXCEEDED: 409,
  SPENDING_LIMIT: 429,
  DEPTH_EXCEEDED: 409,
  AGENT_DIVERGED: 500,
  LOOP_BLOCKED: 500,
  NODE_KEYS_DIFFER: 500,
  NODE_UNREACHABLE: 502,
  TOOL_WORKER_FAILED: 500,
  RUNTIME_NOT_STARTED: 503,
  RUNTIME_STOPPED: 503,
  LEASE_LOST: 503,

  THREAD_EXISTS: 409,
  CLIENT_ID_TAKEN: 409,
  FENCED: 409,
  LOG_MOVED: 409,
  STATE_CONFLICT: 409,
  VALUE_MOVED: 409,
  VALUE_LIMIT: 409,
  TOKEN_SPENT: 409,
  LIMIT_REACHED: 429,
  STORE_LOCKED: 503,
  STORE_VERSION: 503,
  STORE_CLOSED: 503,
  STORE_CORRUPT: 500,
  STORE_FULL: 507,
  STORE_READ_ONLY: 503,
  STORE_LIMIT: 507,
  STORE_UNREACHABLE: 503,
  TEXT_INVALID: 400,
  SECRET_KEY_MISSING: 500,
}

/** The body of every error response. */
export interface ErrorBody {
  readonly error: {
    readonly code: string
    readonly message: string
    readonly hint?: string
    /** Their fields begin with the part of the request, e.g. `body.message.text`. */
    readonly problems?: readonly SchemaProblem[]
  }
}

/** An error that the HTTP layer raises. */
export class HttpError extends SkeinError {
  declare readonly code: ApiErrorCode
  readonly problems: readonly SchemaProblem[]
  readonly headers: Readonly<Record<string, string>>

  constructor(
    message: string,
    options: {
      readonly code: ApiErrorCode
      readonly hint?: string
      readonly cause?: unknown
      readonly problems?: readonly SchemaProblem[]
      readonly headers?: Readonly<Record<string, string>>
    },
  ) {
    super(message, options)
    this.problems = options.problems ?? []
    this.headers = options.headers ?? {}
  }
}

/**
 * Creates the error for an unknown thread. A thread of another client gives the same error, so that ids
 * cannot be guessed.
 */
export function threadNotFound(): HttpError {
  return new HttpError('There is no such thread.', {
    code: 'THREAD_NOT_FOUND',
    hint: 'Check the id. A thread that belongs to someone else gives the same error.',
  })
}

/** Creates the error for a client that sends too many requests. */
export function rateLimited(waitMs: number): HttpError {
  return new HttpError('Too many requests.', {
    code: 'RATE_LIMITED',
    hint: 'Wait as long as `retry-after` says.',
    headers: { 'retry-after': String(Math.ceil(waitMs / 1000)) },
  })
}

export function invalidInput(message: string, field: string): HttpError {
  return new HttpError(message, { code: 'INPUT_INVALID', problems: [{ field, message }] })
}
