import { messageOf, SkeinError } from '@skein/base'
import type { DataIssue } from './structure.ts'
import type { Turn } from './turn.ts'

/** The twelve codes of UPP §4.4 by name. */
export const ErrorCode = {
  AuthenticationFailed: 'AUTHENTICATION_FAILED',
  RateLimited: 'RATE_LIMITED',
  ContextLengthExceeded: 'CONTEXT_LENGTH_EXCEEDED',
  ModelNotFound: 'MODEL_NOT_FOUND',
  InvalidRequest: 'INVALID_REQUEST',
  InvalidResponse: 'INVALID_RESPONSE',
  ContentFiltered: 'CONTENT_FILTERED',
  QuotaExceeded: 'QUOTA_EXCEEDED',
  ProviderError: 'PROVIDER_ERROR',
  NetworkError: 'NETWORK_ERROR',
  Timeout: 'TIMEOUT',
  Cancelled: 'CANCELLED',
} as const
/** One of the twelve codes. */
export type ErrorCode = (typeof ErrorCode)[keyof typeof ErrorCode]

/** The kinds of models, by name (UPP §15.3). */
export const Modality = { LLM: 'llm', Embedding: 'embedding', Image: 'image' } as const
/** A kind of model. */
export type Modality = (typeof Modality)[keyof typeof Modality]

/** The fields of a `UPPError` besides its message. */
export interface UPPErrorOptions {
  readonly code: ErrorCode
  readonly provider: string
  readonly modality: Modality
  readonly statusCode?: number | undefined
  readonly cause?: unknown
  readonly hint?: string | undefined
  /** The vendor's own error code and type, e.g. `insufficient_quota`. */
  readonly vendorCode?: string | undefined
  readonly vendorType?: string | undefined
  readonly requestId?: string | undefined
  /** How long the vendor asks to wait. The error stores a number from 0 to one year, or undefined. */
  readonly retryAfterMs?: number | undefined
  /** Whether the vendor allows a retry, if it says so explicitly (`x-should-retry`). */
  readonly shouldRetry?: boolean | undefined
  /** The vendor's rate-limit headers, with lower-case names. */
  readonly rateLimit?: Readonly<Record<string, string>> | undefined
  /** The error body, redacted and cut to a readable length. */
  readonly body?: string | undefined
  /** Where the data of a structured answer does not fit its schema; set only with the option `validate`. */
  readonly issues?: readonly DataIssue[] | undefined
}

/**
 * The error that calls of every modality throw (UPP §4.4). Its
 * message, cause, stack and JSON contain no secret.
 */
export class UPPError extends SkeinError {
  declare readonly code: ErrorCode
  readonly provider!: string
  readonly modality!: Modality
  readonly statusCode: number | undefined
  readonly vendorCode: string | undefined
  readonly vendorType: string | undefined
  readonly requestId: string | undefined
  readonly retryAfterMs: number | undefined
  readonly shouldRetry: boolean | undefined
  readonly rateLimit: Readonly<Record<string, string>> | undefined
  readonly body: string | undefined
  /** Set if a structured answer did not fit its schema: each place as a JSON pointer, with a message. */
  readonly issues: readonly DataIssue[] | undefined
  /** The part of the turn that was produced before the failure. Not part of the error's JSON. */
  turn: Turn | undefined

  constructor(message: string, options: UPPErrorOptions) {
    const { code, hint, cause, ...fields } = options
    super(message, cause === undefined ? { code, hint } : { code, hint, cause })
    Object.assign(this, fields)
    this.retryAfterMs = boundedWait(options.retryAfterMs)
    Object.defineProperty(this, 'turn', { value: undefined, writable: true, enumerable: false })
  }
}

/**
 * The longest `retryAfterMs`; longer waits are cut, because some vendors send absurd values and a Date
 * overflows at 8.64e15.
 */
const MAX_RETRY_AFTER_MS = 365 * 24 * 3_600_000

/** Returns the wait that a vendor asks for, at most one year; undefined if it is not a number from 0 up. */
function boundedWait(ms: number | undefined): number | undefined {
  if (typeof ms !== 'number' || Number.isNaN(ms) || ms < 0) return undefined
  return Math.min(ms, MAX_RETRY_AFTER_MS)
}

/** True for a `UPPError`, also one from another installed copy of this package. */
export function isUPPError(error: unknown): error is UPPError {
  return SkeinError.is(error) && 'provider' in error && 'modality' in error
}

/** The provider and modality that an error belongs to; every error names them (UPP §16.2). */
export interface ErrorOrigin {
  readonly provider: string
  readonly modality: Modality
}

/** Converts any error thrown by a provider into a `UPPError` with the original as its cause (UPP §4.4). */
export function toUPPError(error: unknown, { provider, modality }: ErrorOrigin): UPPError {
  if (isUPPError(error)) return error
  return new UPPError(messageOf(error), {
    code: ErrorCode.ProviderError,
    provider,
    modality,
    cause: error,
    hint: 'The provider threw something other than a UPPError; see the cause.',
  })
}

/**
 * Converts an error thrown by the application's own code (a middleware, a hook) into a `UPPError`. Its code
 * is INVALID_REQUEST, because a retry would not help.
 */
export function hookError(error: unknown, where: string, origin: ErrorOrigin): UPPError {
  if (isUPPError(error)) return error
  return new UPPError(`${where} failed: ${messageOf(error)}`, {
    code: ErrorCode.InvalidRequest,
    ...origin,
    cause: error,
  })
}

/** Creates the error of a call whose signal was aborted; the abort reason is its cause. */
export function cancelledError(signal: AbortSignal, origin: ErrorOrigin): UPPError {
  return new UPPError('The call was cancelled.', {
    code: ErrorCode.Cancelled,
    ...origin,
    cause: signal.reason,
  })
}

/**
 * Creates the error of an answer that is over one of the input limits. It is not retried, because the next
 * answer would cost as much and most likely be as large.
 */
export function overLimit(
  what: string,
  name: string,
  limit: number,
  origin: ErrorOrigin,
): UPPError {
  const unit = name.replace(/^.*(?=[A-Z])/, '').toLowerCase() // the last word of the name
  return new UPPError(`${what} of ${origin.provider} is over ${limit} ${unit}.`, {
    code: ErrorCode.InvalidResponse,
    ...origin,
    shouldRetry: false,
    hint: `The limit is config.${name}.`,
  })
}

/** Returns a setting that must be a number above 0. */
export function positive(name: string, value: unknown, origin: ErrorOrigin): number {
  if (typeof value === 'number' && value > 0) return value
  throw invalidSetting(name, value, 'a number above 0', origin)
}

/** Creates the error of a setting with a wrong value. */
export function invalidSetting(
  name: string,
  value: unknown,
  expected: string,
  origin: ErrorOrigin,
): UPPError {
  const valueText = typeof value === 'string' ? JSON.stringify(value) : String(value)
  return invalidRequest(
    `${name} is ${valueText} (${typeof value}).`,
    origin,
    `Expected ${expected}.`,
  )
}

/** Creates the error for a request that cannot be sent as it is. */
export function invalidRequest(
  message: string,
  origin: ErrorOrigin,
  hint?: string,
  cause?: unknown,
): UPPError {
  return new UPPError(message, { code: ErrorCode.InvalidRequest, ...origin, hint, cause })
}

/** Creates the error for a wrong value that has to do with no provider: a message, a thread, an image. */
export function invalidValue(message: string, hint?: string, cause?: unknown): UPPError {
  return invalidRequest(message, { provider: 'skein', modality: 'llm' }, hint, cause)
}
