import { type Clock, systemClock } from '@skein/base'
import { ErrorCode, UPPError } from '../contract/error.ts'
import { sleep as sleepFor } from '../transport/time-limits.ts'
import { cancelledError, type ErrorOrigin } from '../contract/error.ts'

/** The limits of a `RateLimiter`. */
export interface RateLimiterOptions {
  /** Requests in any span of `intervalMs`. Default: no limit. */
  readonly requests?: number
  /** Tokens in any span of `intervalMs`, input and output. Default: no limit. */
  readonly tokens?: number
  /** Default one minute. */
  readonly intervalMs?: number
  /** Requests that may wait, for each key; one more fails with RATE_LIMITED. Default 1000. */
  readonly maxQueue?: number
  readonly clock?: Clock
  /** Waits, or rejects when the signal aborts; for tests. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>
}

/** A request that was let in. `settle` replaces the tokens it reserved by those it used. */
export interface RateAdmission {
  readonly reserved: number
  settle(tokens: number): void
}

/** What a request asks a `RateLimiter` for. */
export interface AdmissionRequest {
  /** Requests with different keys do not wait for each other. */
  readonly key: string
  /** Tokens to reserve until the true number is known. */
  readonly tokens: number
  readonly signal: AbortSignal
  readonly origin: ErrorOrigin
}

/** Above this many keys, those without a recent request are forgotten. */
const SWEEP_AT = 1000

/**
 * Lets requests in, first come, first served, so that no span of the interval sees more than the
 * limits. Counts in the memory of this process; share one limiter between the models of one account.
 */
export class RateLimiter {
  readonly #options: Required<RateLimiterOptions>
  readonly #lanes = new Map<string, Lane>()
  #sweepAt = SWEEP_AT

  constructor({
    requests = Infinity,
    tokens = Infinity,
    intervalMs = 60_000,
    maxQueue = 1000,
    clock = systemClock,
    sleep = sleepFor,
  }: RateLimiterOptions) {
    this.#options = { requests, tokens, intervalMs, maxQueue, clock, sleep }
    for (const [name, value] of Object.entries({ requests, tokens, intervalMs }))
      if (!(value >= 1)) {
        throw new UPPError(`The rate limit \`${name}\` is ${value}.`, {
          code: ErrorCode.InvalidRequest,
          provider: 'skein',
          modality: 'llm',
          hint: 'Give a number, 1 or more.',
        })
      }
  }

  /** Waits for its turn. Rejects with CANCELLED on abort and with RATE_LIMITED when too many wait. */
  admit(request: AdmissionRequest): Promise<RateAdmission> {
    const { key, signal, origin } = request
    if (signal.aborted) return Promise.reject(cancelledError(signal, origin))
    return this.#laneOf(key).enter(request)
  }

  #laneOf(key: string): Lane {
    const known = this.#lanes.get(key)
    if (known) return known
    if (this.#lanes.size >= this.#sweepAt) this.#sweep()
    const lane = new Lane(this.#options)
    this.#lanes.set(key, lane)
    return lane
  }

  /** Rarely, and then all at once, so that a new key costs little. */
  #sweep(): void {
    for (const [key, lane] of this.#lanes) if (lane.isIdle()) this.#lanes.delete(key)
    this.#sweepAt = Math.max(SWEEP_AT, 2 * this.#lanes.size)
  }
}

interface Waiter {
  readonly tokens: number
  readonly admit: (admission: RateAdmission) => void
}

/** The requests of one key. */
class Lane {
  readonly #options: Required<RateLimiterOptions>
  readonly #requests: SlidingWindow
  readonly #used: SlidingWindow
  /** Tokens of the requests that run: nobody knows yet what they will have used. */
  #reserved = 0
  readonly #waiting: Waiter[] = []
  #timer: AbortController | undefined

  constructor(options: Required<RateLimiterOptions>) {
    this.#options = options
    this.#requests = new SlidingWindow(options.intervalMs, options.clock)
    this.#used = new SlidingWindow(options.intervalMs, options.clock)
  }

  isIdle(): boolean {
    return this.#requests.sum + this.#used.sum + this.#reserved + this.#waiting.length === 0
  }

  enter({ tokens, signal, origin }: AdmissionRequest): Promise<RateAdmission> {
    // A request that alone exceeds the limit goes when nothing else counts, or it would never go.
    const needed = Math.min(tokens, this.#options.tokens)
    if (this.#waiting.length === 0 && this.#delay(needed) === 0)
      return Promise.resolve(this.#admit(needed))
    const { maxQueue } = this.#options
    if (this.#waiting.length >= maxQueue) {
      const delay = this.#delay(needed)
      const error = new UPPError(`${maxQueue} requests wait for the rate limit already.`, {
        code: ErrorCode.RateLimited,
        ...origin,
        retryAfterMs: Number.isFinite(delay) ? delay : undefined,
        hint: 'This limit is your own: raise maxQueue or the limits, or ask again later.',
      })
      return Promise.reject(error)
    }
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1)
        reject(cancelledError(signal, origin))
        this.#advance()
      }
      const admit = (admission: RateAdmission): void => {
        signal.removeEventListener('abort', leave)
        resolve(admission)
      }
      const waiter: Waiter = { tokens: needed, admit }
      this.#waiting.push(waiter)
      signal.addEventListener('abort', leave, { once: true })
      this.#advance()
    })
  }

  /** Lets in the requests that may go now and sets a timer for the next one. */
  #advance(): void {
    this.#timer?.abort()
    this.#timer = undefined
    for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
      const delay = this.#delay(next.tokens)
      if (delay > 0) return this.#wakeAfter(delay)
      this.#waiting.shift()
      next.admit(this.#admit(next.tokens))
    }
  }

  #wakeAfter(ms: number): void {
    if (ms === Infinity) return // until a running request is settled
    const timer = (this.#timer = new AbortController())
    this.#options.sleep(ms, timer.signal).then(
      () => this.#advance(),
      () => {}, // told to stop, because something else moved the queue
    )
  }

  #admit(tokens: number): RateAdmission {
    let isOpen = true
    this.#requests.add(1)
    this.#reserved += tokens
    return {
      reserved: tokens,
      settle: (used) => {
        if (!isOpen) return
        isOpen = false
        this.#reserved -= tokens
        this.#used.add(used)
        this.#advance()
      },
    }
  }

  /** Milliseconds until a request of so many tokens may go; `Infinity`: when another is settled. */
  #delay(tokens: number): number {
    const { requests, tokens: most } = this.#options
    const forRequest = this.#requests.msUntil(requests - 1)
    if (most === Infinity) return forRequest
    return Math.max(forRequest, this.#used.msUntil(most - this.#reserved - tokens))
  }
}

/** Adds amounts up over the last so many milliseconds. Linear: each amount is added and dropped once. */
class SlidingWindow {
  readonly #spanMs: number
  readonly #clock: Clock
  /** Oldest first, from `#head`. */
  #entries: { readonly at: number; readonly amount: number }[] = []
  #head = 0
  #sum = 0

  constructor(spanMs: number, clock: Clock) {
    this.#spanMs = spanMs
    this.#clock = clock
  }

  add(amount: number): void {
    if (amount <= 0) return
    this.#entries.push({ at: this.#clock.now(), amount })
    this.#sum += amount
  }

  get sum(): number {
    this.#forget()
    return this.#sum
  }

  /** Milliseconds until the sum is at most this: 0 when it is, `Infinity` when it never will be. */
  msUntil(limit: number): number {
    if (limit < 0) return Infinity
    let sum = this.sum
    if (sum <= limit) return 0
    for (let index = this.#head; ; index++) {
      const { at, amount } = this.#entries[index]! // the sum of none is 0, which is within the limit
      sum -= amount
      if (sum <= limit || index === this.#entries.length - 1)
        return at + this.#spanMs - this.#clock.now()
    }
  }

  #forget(): void {
    const since = this.#clock.now() - this.#spanMs
    for (let entry = this.#entries[this.#head]; entry && entry.at <= since;) {
      this.#sum -= entry.amount
      entry = this.#entries[++this.#head]
    }
    if (this.#head === this.#entries.length) this.#sum = 0 // also of what rounding left
    if (this.#head > 64 && this.#head * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head)
      this.#head = 0
    }
  }
}
