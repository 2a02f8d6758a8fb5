import type { Random } from '@skein/base'
import type { RetryStrategy } from './config.ts'
import { ErrorCode, UPPError } from './error.ts'

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
  /** Longest wait that the vendor may ask for with `Retry-After`. Default 60000. */
  readonly maxRetryAfter?: number
  /** Also repeat an attempt that ran into the caller's own time limit. Default true. */
  readonly retryTimeouts?: boolean
  /** Source of the jitter. */
  readonly random?: Random
}

/** Delays that double, with jitter. Honours the vendor's `Retry-After` where that is longer. */
export class ExponentialBackoff implements RetryStrategy {
  readonly #options: Required<ExponentialBackoffOptions>

  constructor(options: ExponentialBackoffOptions = {}) {
    this.#options = {
      maxRetries: count('ExponentialBackoff', 'maxRetries', options.maxRetries ?? 2),
      baseDelay: delay('ExponentialBackoff', 'baseDelay', options.baseDelay ?? 500),
      maxDelay: delay('ExponentialBackoff', 'maxDelay', options.maxDelay ?? 8000),
      maxRetryAfter: delay('ExponentialBackoff', 'maxRetryAfter', options.maxRetryAfter ?? 60_000),
      jitter: flag('ExponentialBackoff', 'jitter', options.jitter ?? true),
      retryTimeouts: flag('ExponentialBackoff', 'retryTimeouts', options.retryTimeouts ?? true),
      random: options.random ?? Math.random,
    }
  }

  onRetry(error: UPPError, attempt: number): number | null {
    const { maxRetries, baseDelay, maxDelay, jitter, random, maxRetryAfter } = this.#options
    if (attempt > maxRetries || !isTransient(error)) return null
    if (isOwnTimeout(error) && !this.#options.retryTimeouts) return null
    const ceiling = Math.min(maxDelay, baseDelay * 2 ** (attempt - 1))
    const computed = jitter ? ceiling * (0.5 + random() / 2) : ceiling
    return Math.max(computed, askedDelay(error, maxRetryAfter))
  }
}

/** Settings of `LinearBackoff`. Times are in milliseconds. */
export interface LinearBackoffOptions {
  /** Attempts after the first. Default 2. */
  readonly maxRetries?: number
  /** Wait before each retry. Default 1000. */
  readonly delay?: number
  /** Longest wait that the vendor may ask for with `Retry-After`. Default 60000. */
  readonly maxRetryAfter?: number
}

/** The same delay each time, or the vendor's `Retry-After` where that is longer. */
export class LinearBackoff implements RetryStrategy {
  readonly #options: Required<LinearBackoffOptions>

  constructor(options: LinearBackoffOptions = {}) {
    this.#options = {
      maxRetries: count('LinearBackoff', 'maxRetries', options.maxRetries ?? 2),
      delay: delay('LinearBackoff', 'delay', options.delay ?? 1000),
      maxRetryAfter: delay('LinearBackoff', 'maxRetryAfter', options.maxRetryAfter ?? 60_000),
    }
  }

  onRetry(error: UPPError, attempt: number): number | null {
    if (attempt > this.#options.maxRetries || !isTransient(error)) return null
    return Math.max(this.#options.delay, askedDelay(error, this.#options.maxRetryAfter))
  }
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
 * never a request that the vendor would refuse again (§4.3), unless it says otherwise itself.
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

function isTransient(error: UPPError): boolean {
  return isRetryable(error) && (transient.has(error.code) || error.shouldRetry === true)
}

/** Ours, not the vendor's HTTP 408. */
function isOwnTimeout(error: UPPError): boolean {
  return error.code === ErrorCode.Timeout && error.statusCode === undefined
}

function askedDelay(error: UPPError, longest: number): number {
  return Math.min(error.retryAfterMs ?? 0, longest)
}

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
