import { untilAborted, isPromise, type MaybePromise } from '@skein/base'
import type { RetryStrategy } from '../contract/provider.ts'
import { ErrorCode, isUPPError, UPPError } from '../contract/error.ts'
import { defaultRetry, isRetryable } from './retry.ts'
import { Attempt, cancelled, contextOf, type VendorAnswer, type VendorCall } from './attempt.ts'
import { sleep } from './time-limits.ts'

/** Decodes the body of a successful response into values; `next` resolves to undefined at the end. */
export interface AnswerReader<T> {
  next(): Promise<T | undefined>
}

/** Chooses the reader of a response by its headers or its first bytes. */
export type OpenReader<T> = (answer: VendorAnswer) => MaybePromise<AnswerReader<T>>

/**
 * Runs one call with its retries and iterates over the values that the reader decodes. Used for both
 * complete and streamed responses. A failed attempt is repeated, with the next key, unless a value has
 * already been returned. Ending the iteration early, or aborting, closes the connection immediately.
 */
export class VendorRun<T> implements AsyncIterableIterator<T, undefined> {
  readonly #call: VendorCall
  readonly #openReader: OpenReader<T>
  readonly #strategy: RetryStrategy
  #attempt: Attempt | undefined
  #reader: AnswerReader<T> | undefined
  #waiting: AbortController | undefined
  #failures = 0
  #delivered = false
  #done = false
  /** The secrets of all attempts, because a later error may quote an earlier key. */
  #secrets: readonly string[] = []

  constructor(call: VendorCall, openReader: OpenReader<T>) {
    this.#call = call
    this.#openReader = openReader
    this.#strategy = call.config.retryStrategy ?? defaultRetry
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<T, undefined>> {
    while (!this.#done) {
      try {
        if (!this.#reader) {
          if (this.#call.signal.aborted) throw cancelled(this.#call)
          if (this.#strategy.beforeRequest) await this.#waitBefore(this.#strategy)
          this.#attempt = new Attempt(this.#call)
          const reader = this.#openReader(await this.#attempt.open())
          this.#reader = isPromise(reader) ? await reader : reader
        }
        const value = await this.#reader.next()
        if (value !== undefined) {
          this.#delivered = true
          return { done: false, value }
        }
        this.complete()
      } catch (error) {
        if (!this.#done) await this.#recover(error)
      }
    }
    return { done: true, value: undefined }
  }

  /** Ends a run whose answer was read to its end. */
  complete(): void {
    this.#finish()
    try {
      this.#strategy.reset?.()
    } catch {
      // The answer is complete, so an error of the strategy does not change it.
    }
  }

  async return(): Promise<IteratorResult<T, undefined>> {
    this.#finish()
    return { done: true, value: undefined }
  }

  #finish(): void {
    this.#done = true
    this.#waiting?.abort()
    this.#endAttempt()
  }

  #endAttempt(): void {
    this.#attempt?.close()
    this.#attempt = this.#reader = undefined
  }

  async #waitBefore(strategy: RetryStrategy): Promise<void> {
    const ms = await this.#abortable((signal) =>
      untilAborted(signal, Promise.resolve(strategy.beforeRequest!())),
    )
    if (ms > 0) await this.#abortable((signal) => sleep(ms, signal))
  }

  /** Waits until the next attempt may start, or ends the run and throws the error for the caller. */
  async #recover(thrown: unknown): Promise<void> {
    const attempt = this.#attempt
    this.#secrets = [...new Set([...this.#secrets, ...(attempt?.secrets ?? [])])]
    const failure = attempt
      ? attempt.errorOf(thrown, this.#secrets)
      : strategyError(thrown, this.#call)
    this.#tellKeyStrategy(attempt?.key, failure)
    this.#endAttempt()
    try {
      const delay = this.#delivered || !isRetryable(failure) ? null : await this.#delay(failure)
      if (delay === null) throw failure
      await this.#abortable((signal) => sleep(delay, signal))
    } catch (error) {
      this.#finish()
      throw error
    }
  }

  async #delay(failure: UPPError): Promise<number | null> {
    this.#failures += 1
    let delay: number | null
    try {
      delay = await this.#abortable((signal) =>
        untilAborted(signal, Promise.resolve(this.#strategy.onRetry(failure, this.#failures))),
      )
    } catch (error) {
      throw strategyError(error, this.#call)
    }
    return typeof delay === 'number' && Number.isFinite(delay) ? Math.max(0, delay) : null
  }

  /** Runs a wait that ends immediately with CANCELLED when the caller's signal aborts or `return` is called. */
  async #abortable<R>(wait: (signal: AbortSignal) => Promise<R>): Promise<R> {
    const { signal } = this.#call
    const controller = (this.#waiting = new AbortController())
    const onAbort = (): void => controller.abort()
    if (signal.aborted) onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      return await wait(controller.signal)
    } catch (error) {
      throw controller.signal.aborted ? cancelled(this.#call) : error
    } finally {
      signal.removeEventListener('abort', onAbort)
      this.#waiting = undefined
    }
  }

  #tellKeyStrategy(key: string | undefined, error: UPPError): void {
    const { apiKey } = this.#call.config
    if (key === undefined || typeof apiKey !== 'object' || !keyErrors.has(error.code)) return
    apiKey.onKeyError?.(key, error)
  }
}

/** Failures that another key may avoid. */
const keyErrors = new Set<string>([
  ErrorCode.RateLimited,
  ErrorCode.QuotaExceeded,
  ErrorCode.AuthenticationFailed,
])

function strategyError(error: unknown, call: VendorCall): UPPError {
  if (isUPPError(error)) return error
  return new UPPError(`The retry strategy for ${call.endpoint.name} threw an error.`, {
    code: ErrorCode.InvalidRequest,
    ...contextOf(call),
    cause: error,
    hint: 'See the cause; onRetry and beforeRequest must return milliseconds, onRetry also null.',
  })
}

/** Runs a call whose reader returns exactly one value, and returns that value. */
export async function runForOne<T>(call: VendorCall, openReader: OpenReader<T>): Promise<T> {
  const run = new VendorRun(call, openReader)
  const { value } = await run.next()
  run.complete()
  return value as T // the readers passed to this function read the whole body and return one value, or throw
}
