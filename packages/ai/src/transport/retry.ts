import type { Random } from '@skein/base'
import type { RetryStrategy } from '../contract/provider.ts'
import { ErrorCode, UPPError } from '../contract/error.ts'

/** The vendor's wait that is sat out within a call. */
const MAX_WAIT_MS = 60_000
/** The vendor's wait that is worth keeping the work for, by somebody who can put it aside. */
const MAX_PARK_MS = 15 * 60_000
/** Requests for one inference of one model, by all layers together. */
const MAX_REQUESTS = 4

/** Limits for `judgeRetry`. Times are in milliseconds. */
export interface RetryLimits {
  /** Requests in all, the first included. Default 4. */
  readonly maxRequests?: number
  /** Delay before the second request; doubles with each. Default 500. */
  readonly baseDelayMs?: number
  /** No computed delay is longer. Default 8000. */
  readonly maxDelayMs?: number
  /** Spread over the upper half of each delay, so that clients do not return together. Default true. */
  readonly jitter?: boolean
  /** Longest `Retry-After` that is sat out within the call. Default 60 seconds. */
  readonly maxWaitMs?: number
  /** Longest `Retry-After` for which the work may be put aside. Default 15 minutes. */
  readonly maxParkMs?: number
  /** Shortens a longer `Retry-After` to this instead of giving up. Default: none. */
  readonly capMs?: number
  /** Also repeat an attempt that ran into the caller's own time limit. Default true. */
  readonly retryTimeouts?: boolean
  /** Also ask again after an answer that made no sense: a model may do better the next time. Default false. */
  readonly retryInvalidResponse?: boolean
  /** Source of the jitter. */
  readonly random?: Random
}

/** What to do after a failed request: wait in place, put the work aside and come back, or give up. */
export type RetryVerdict =
  | { readonly type: 'wait'; readonly ms: number }
  | { readonly type: 'park'; readonly ms: number }
  | { readonly type: 'fail' }

/**
 * The one decision about retrying, for library and runtime alike: whether the error may pass, how
 * long to wait, and when to give up. A vendor that asks for 60 seconds or less is waited for in the
 * call. One that asks for up to 15 minutes is `park`: whoever cannot put the work aside treats that as
 * a failure. Sending earlier than the vendor asked would only be refused again, so nobody does.
 *
 *     const verdict = judgeRetry(error, requestsMade)
 *     if (verdict.type === 'fail') throw error // error.retryAfterMs says what the vendor asked for
 */
export function judgeRetry(
  error: UPPError,
  requestsMade: number,
  limits: RetryLimits = {},
): RetryVerdict {
  const { maxRequests = MAX_REQUESTS, maxWaitMs = MAX_WAIT_MS, maxParkMs = MAX_PARK_MS } = limits
  const { baseDelayMs = 500, maxDelayMs = 8000, jitter = true, random = Math.random } = limits
  const { capMs, retryTimeouts = true, retryInvalidResponse = false } = limits
  const isOwnTimeout = error.code === ErrorCode.Timeout && error.statusCode === undefined
  const isTransient =
    transient.has(error.code) ||
    error.shouldRetry === true ||
    (retryInvalidResponse && error.code === ErrorCode.InvalidResponse)
  if (requestsMade >= maxRequests || !isRetryable(error) || !isTransient) return { type: 'fail' }
  if (isOwnTimeout && !retryTimeouts) return { type: 'fail' }

  const ceiling = Math.min(maxDelayMs, baseDelayMs * 2 ** Math.min(requestsMade - 1, 30))
  const computed = jitter ? ceiling * (0.5 + random() / 2) : ceiling
  const asked = Math.min(error.retryAfterMs ?? 0, capMs ?? Infinity)
  const ms = Math.max(computed, asked)
  if (capMs !== undefined || asked <= maxWaitMs) return { type: 'wait', ms }
  return asked <= maxParkMs ? { type: 'park', ms } : { type: 'fail' }
}

/** Settings of `ExponentialBackoff`. Times are in milliseconds. */
export interface ExponentialBackoffOptions {
  /** Attempts after the first. Default 2. */
  readonly maxRetries?: number
  /** Longest delay before the first retry; doubles with each. Default 500. */
  readonly baseDelay?: number
  /** No computed delay is longer. Default 8000. */
  readonly maxDelay?: number
  /** Spread over the upper half of each delay, so that clients do not return together. Default true. */
  readonly jitter?: boolean
  /**
   * Where the vendor asks for more with `Retry-After`, this is waited instead. Without it, more than
   * 60 seconds fail at once, with `retryAfterMs` on the error.
   */
  readonly maxRetryAfter?: number
  /** Also repeat an attempt that ran into the caller's own time limit. Default true. */
  readonly retryTimeouts?: boolean
  /** Source of the jitter. */
  readonly random?: Random
}

/** Delays that double, with jitter. Honours the vendor's `Retry-After` where that is longer. */
export class ExponentialBackoff implements RetryStrategy {
  readonly #limits: RetryLimits

  constructor(options: ExponentialBackoffOptions = {}) {
    const owner = 'ExponentialBackoff'
    const { maxRetries = 2, baseDelay = 500, maxDelay = 8000, maxRetryAfter, random } = options
    this.#limits = {
      maxRequests: count(owner, 'maxRetries', maxRetries) + 1,
      baseDelayMs: delay(owner, 'baseDelay', baseDelay),
      maxDelayMs: delay(owner, 'maxDelay', maxDelay),
      capMs: maxRetryAfter === undefined ? undefined : delay(owner, 'maxRetryAfter', maxRetryAfter),
      jitter: flag(owner, 'jitter', options.jitter ?? true),
      retryTimeouts: flag(owner, 'retryTimeouts', options.retryTimeouts ?? true),
      random,
    }
  }

  onRetry(error: UPPError, attempt: number): number | null {
    return waitOf(judgeRetry(error, attempt, this.#limits))
  }
}

/** Settings of `LinearBackoff`. Times are in milliseconds. */
export interface LinearBackoffOptions {
  /** Attempts after the first. Default 2. */
  readonly maxRetries?: number
  /** Wait before each retry. Default 1000. */
  readonly delay?: number
  /** As for `ExponentialBackoff`. */
  readonly maxRetryAfter?: number
}

/** The same delay each time, or the vendor's `Retry-After` where that is longer. */
export class LinearBackoff implements RetryStrategy {
  readonly #limits: RetryLimits

  constructor(options: LinearBackoffOptions = {}) {
    const owner = 'LinearBackoff'
    const { maxRetries = 2, maxRetryAfter } = options
    const delayMs = delay(owner, 'delay', options.delay ?? 1000)
    this.#limits = {
      maxRequests: count(owner, 'maxRetries', maxRetries) + 1,
      baseDelayMs: delayMs,
      maxDelayMs: delayMs,
      capMs: maxRetryAfter === undefined ? undefined : delay(owner, 'maxRetryAfter', maxRetryAfter),
      jitter: false,
    }
  }

  onRetry(error: UPPError, attempt: number): number | null {
    return waitOf(judgeRetry(error, attempt, this.#limits))
  }
}

/** Within a call nothing can be put aside: what would have to be parked fails. */
function waitOf(verdict: RetryVerdict): number | null {
  return verdict.type === 'wait' ? verdict.ms : null
}

/** One attempt only. */
export class NoRetry implements RetryStrategy {
  onRetry(): null {
    return null
  }
}

/**
 * What is used without a `retryStrategy`. A time limit that the caller set is kept: such an attempt
 * is not repeated.
 */
export const defaultRetry: RetryStrategy = new ExponentialBackoff({ retryTimeouts: false })

/**
 * Failures that may be repeated at all, whatever the strategy says: never a cancelled call, and
 * never a request that the vendor would refuse again (UPP §4.3), unless it says otherwise itself.
 */
export function isRetryable(error: UPPError): boolean {
  if (error.code === ErrorCode.Cancelled || error.code === ErrorCode.QuotaExceeded) return false
  return error.shouldRetry ?? repeatable.has(error.code)
}

const transient = new Set<string>([
  ErrorCode.RateLimited,
  ErrorCode.ProviderError,
  ErrorCode.NetworkError,
  ErrorCode.Timeout,
])

/** A strategy of the caller's own may also repeat an answer that made no sense. */
const repeatable = new Set<string>([...transient, ErrorCode.InvalidResponse])

function count(owner: string, name: string, value: unknown): number {
  if (typeof value === 'number' && value >= 0 && (Number.isInteger(value) || value === Infinity)) {
    return value
  }
  throw invalid(owner, name, value, 'a whole number from 0')
}

function delay(owner: string, name: string, value: unknown): number {
  if (typeof value === 'number' && value >= 0 && Number.isFinite(value)) return value
  throw invalid(owner, name, value, 'milliseconds from 0')
}

function flag(owner: string, name: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value
  throw invalid(owner, name, value, 'true or false')
}

function invalid(owner: string, name: string, value: unknown, expected: string): UPPError {
  const shown = typeof value === 'string' ? JSON.stringify(value) : String(value)
  return new UPPError(`${owner}: ${name} is ${shown} (${typeof value}); expected ${expected}.`, {
    code: ErrorCode.InvalidRequest,
    provider: 'skein',
    modality: 'llm',
  })
}
