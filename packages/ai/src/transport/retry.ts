import type { Random } from '@skein/base'
import type { RetryStrategy } from '../contract/provider.ts'
import { ErrorCode, invalidSetting, type UPPError } from '../contract/error.ts'

/** If the vendor asks for a wait of up to this time, the call itself waits. */
const MAX_WAIT_MS = 60_000
/**
 * If the vendor asks for a longer wait, up to this time, callers that can park their work (stop now, resume
 * later) do so.
 */
const MAX_PARK_MS = 15 * 60_000
/** The default of `RetryLimits.maxRequests`. */
const MAX_REQUESTS = 4

/** Limits for `judgeRetry`. Times are in milliseconds. */
export interface RetryLimits {
  /** The maximum number of requests for one inference, including the first request. Default 4. */
  readonly maxRequests?: number
  /** Delay before the second request; it doubles with each further request. Default 500. */
  readonly baseDelayMs?: number
  /** The longest computed delay. Default 8000. */
  readonly maxDelayMs?: number
  /**
   * Chooses each delay at random between half of it and all of it, so that clients do not all retry at the same time.
   * Default true.
   */
  readonly jitter?: boolean
  /** The longest `Retry-After` for which the call itself waits. Default 60 seconds. */
  readonly maxWaitMs?: number
  /**
   * The longest `Retry-After` for which the work may be parked: stopped now and resumed later. Default 15 minutes.
   */
  readonly maxParkMs?: number
  /** Shortens a longer `Retry-After` to this time, instead of parking or giving up. Default: no cap. */
  readonly capMs?: number
  /** Also retries an attempt that exceeded the caller's own time limit. Default true. */
  readonly retryTimeouts?: boolean
  /** Also retries after a response that could not be read, because the next one may be correct. Default false. */
  readonly retryInvalidResponse?: boolean
  /** The random source of the jitter. */
  readonly random?: Random
}

/** The decision after a failed request: wait within the call, park the work (stop now, resume later), or give up. */
type RetryVerdict =
  | { readonly type: 'wait'; readonly ms: number }
  | { readonly type: 'park'; readonly ms: number }
  | { readonly type: 'fail' }

/**
 * Decides whether and when a failed request is sent again; used by the library and the runtime. With a `Retry-After`
 * of up to 60 seconds the verdict is `wait`: the call itself waits. Up to 15 minutes the verdict is `park`: the
 * caller stops its work and resumes it later, or fails if it cannot do that. The delay is never shorter than the
 * vendor asked, unless `capMs` is set, because an earlier request would be refused again.
 *
 *     const verdict = judgeRetry(error, requestsMade)
 *     if (verdict.type === 'fail') throw error // error.retryAfterMs is the wait the vendor asked for
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
  const ownDelay = jitter ? ceiling * (0.5 + random() / 2) : ceiling
  const vendorDelay = Math.min(error.retryAfterMs ?? 0, capMs ?? Infinity)
  const ms = Math.max(ownDelay, vendorDelay)
  if (capMs !== undefined || vendorDelay <= maxWaitMs) return { type: 'wait', ms }
  return vendorDelay <= maxParkMs ? { type: 'park', ms } : { type: 'fail' }
}

/** Settings of `ExponentialBackoff`. Times are in milliseconds. */
export interface ExponentialBackoffOptions {
  /** Attempts after the first. Default 2. */
  readonly maxRetries?: number
  /** Longest delay before the first retry; it doubles with each further retry. Default 500. */
  readonly baseDelay?: number
  /** The longest computed delay. Default 8000. */
  readonly maxDelay?: number
  /**
   * Chooses each delay at random between half of it and all of it, so that clients do not all retry at the same time.
   * Default true.
   */
  readonly jitter?: boolean
  /**
   * The longest wait if the vendor asks for a longer one with `Retry-After`. Without this setting, a
   * `Retry-After` above 60 seconds fails immediately, with `retryAfterMs` on the error.
   */
  readonly maxRetryAfter?: number
  /** Also retries an attempt that exceeded the caller's own time limit. Default true. */
  readonly retryTimeouts?: boolean
  /** The random source of the jitter. */
  readonly random?: Random
}

/** Retries with delays that double, with jitter. A longer `Retry-After` of the vendor is obeyed. */
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
  /** The longest wait for a `Retry-After`, as in `ExponentialBackoffOptions`. */
  readonly maxRetryAfter?: number
}

/** Retries with a constant delay, or with the vendor's `Retry-After` if that is longer. */
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

/**
 * Returns the delay of a `wait` verdict; null for `fail`, and for `park`, because this call cannot be stopped
 * and resumed later.
 */
function waitOf(verdict: RetryVerdict): number | null {
  return verdict.type === 'wait' ? verdict.ms : null
}

/** Never retries. */
export class NoRetry implements RetryStrategy {
  onRetry(): null {
    return null
  }
}

/**
 * The strategy used when no `retryStrategy` is set: `ExponentialBackoff` with its defaults, but an attempt
 * that exceeded the caller's own time limit is not retried. It is not an instance of that class, because the
 * class would then be part of every bundle, with its checks of options.
 */
export const defaultRetry: RetryStrategy = {
  onRetry: (error, attempt) =>
    waitOf(judgeRetry(error, attempt, { maxRequests: 3, retryTimeouts: false })),
}

/**
 * Checks whether a failure may be retried at all, before the strategy is asked. False for a cancelled
 * call and a used-up quota. Otherwise `error.shouldRetry`, sent by the vendor, decides or, without it,
 * the error code (UPP §4.3).
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

/**
 * The error codes after which a retry is possible. `InvalidResponse` is included for strategies written
 * by callers; `judgeRetry` retries it only with `retryInvalidResponse`.
 */
const repeatable = new Set<string>([...transient, ErrorCode.InvalidResponse])

function count(owner: string, name: string, value: unknown): number {
  if (typeof value === 'number' && value >= 0 && (Number.isInteger(value) || value === Infinity)) {
    return value
  }
  throw invalidPolicy(owner, name, value, 'a whole number from 0')
}

function delay(owner: string, name: string, value: unknown): number {
  if (typeof value === 'number' && value >= 0 && Number.isFinite(value)) return value
  throw invalidPolicy(owner, name, value, 'milliseconds from 0')
}

function flag(owner: string, name: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value
  throw invalidPolicy(owner, name, value, 'true or false')
}

function invalidPolicy(owner: string, name: string, value: unknown, expected: string): UPPError {
  const origin = { provider: 'skein', modality: 'llm' } as const
  return invalidSetting(`${owner}: ${name}`, value, expected, origin)
}
