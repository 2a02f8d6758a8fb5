import { type Clock, systemClock } from '@skein/base'
import { ErrorCode, UPPError } from '../contract/error.ts'
import { sleep as sleepFor } from '../transport/time-limits.ts'
import { cancelledError, type ErrorOrigin } from '../contract/error.ts'

/** The limits of a `RateLimiter`. */
export interface RateLimiterOptions {
  /** The maximum number of requests within any `intervalMs` milliseconds. Default: no limit. */
  readonly requests?: number
  /**
   * The maximum number of input and output tokens within any `intervalMs` milliseconds. Default: no
   * limit.
   */
  readonly tokens?: number
  /** The length of the interval in milliseconds. Default one minute. */
  readonly intervalMs?: number
  /**
   * The maximum number of waiting requests per key; further requests fail with RATE_LIMITED. Default
   * 1000.
   */
  readonly maxQueue?: number
  readonly clock?: Clock
  /** Waits, or rejects when the signal aborts. Replaceable for tests. */
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>
}

/** An admitted request. `settle` replaces the reserved tokens by the tokens that were used. */
export interface RateAdmission {
  readonly reserved: number
  settle(tokens: number): void
}

/** A request for admission by a `RateLimiter`. */
export interface AdmissionRequest {
  /** Requests with different keys have separate limits and queues. */
  readonly key: string
  /** The tokens to reserve until the real number is known. */
  readonly tokens: number
  readonly signal: AbortSignal
  readonly origin: ErrorOrigin
}

/** Above this many keys, the keys without a recent request are removed. */
const SWEEP_AT = 1000

/**
 * Admits requests in order of arrival, so that no interval contains more than the limits allow. Counts
 * only in the memory of this process; share one limiter between the models of one account.
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

  /**
   * Waits until the request is admitted. Rejects with CANCELLED on abort and with RATE_LIMITED if the
   * queue is full.
   */
  admit(request: AdmissionRequest): Promise<RateAdmission> {
    const { key, signal, origin } = request
    if (signal.aborted) return Promise.reject(cancelledError(signal, origin))
    return this.#laneOf(key).enter(request)
  }

  #laneOf(key: string): Lane {
    const openLane = this.#lanes.get(key)
    if (openLane) return openLane
    if (this.#lanes.size >= this.#sweepAt) this.#sweep()
    const lane = new Lane(this.#options)
    this.#lanes.set(key, lane)
    return lane
  }

  /**
   * Removes idle keys. The next sweep waits until the number of keys has doubled, so that adding a key
   * stays cheap.
   */
  #sweep(): void {
    for (const [key, lane] of this.#lanes) if (lane.isIdle()) this.#lanes.delete(key)
    this.#sweepAt = Math.max(SWEEP_AT, 2 * this.#lanes.size)
  }
}

interface Waiter {
  readonly tokens: number
  readonly admit: (admission: RateAdmission) => void
}

/** The admitted and waiting requests of one key. */
class Lane {
  readonly #options: Required<RateLimiterOptions>
  readonly #requests: SlidingWindow
  readonly #used: SlidingWindow
  /** Tokens reserved by running requests, whose real use is not known yet. */
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
    // A request that alone exceeds the limit is admitted when nothing else is counted; otherwise it
    // would wait for ever.
    const cost = Math.min(tokens, this.#options.tokens)
    if (this.#waiting.length === 0 && this.#delay(cost) === 0)
      return Promise.resolve(this.#admit(cost))
    const { maxQueue } = this.#options
    if (this.#waiting.length >= maxQueue) {
      const delay = this.#delay(cost)
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
      const waiter: Waiter = { tokens: cost, admit }
      this.#waiting.push(waiter)
      signal.addEventListener('abort', leave, { once: true })
      this.#advance()
    })
  }

  /** Admits the requests that may run now and sets a timer for the next one. */
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
    if (ms === Infinity) return // `settle` of a running request will call `#advance`
    const timer = (this.#timer = new AbortController())
    this.#options.sleep(ms, timer.signal).then(
      () => this.#advance(),
      () => {}, // aborted because `#advance` ran for another reason
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

  /**
   * Returns the milliseconds until a request with this many tokens may run; `Infinity` if a running
   * request must be settled first.
   */
  #delay(tokens: number): number {
    const { requests, tokens: most } = this.#options
    const forRequest = this.#requests.msUntil(requests - 1)
    if (most === Infinity) return forRequest
    return Math.max(forRequest, this.#used.msUntil(most - this.#reserved - tokens))
  }
}

/**
 * Sums the amounts of the last `spanMs` milliseconds. Each amount is added and removed once, so the
 * cost is linear.
 */
class SlidingWindow {
  readonly #spanMs: number
  readonly #clock: Clock
  /** Oldest first. Entries before `#head` have expired. */
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

  /**
   * Returns the milliseconds until the sum is at most `limit`: 0 if it already is, `Infinity` if it
   * never will be.
   */
  msUntil(limit: number): number {
    if (limit < 0) return Infinity
    let sum = this.sum
    if (sum <= limit) return 0
    for (let index = this.#head; ; index++) {
      // an entry exists: an empty window has the sum 0, which is within any limit
      const { at, amount } = this.#entries[index]!
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
    if (this.#head === this.#entries.length) this.#sum = 0 // removes rounding errors
    if (this.#head > 64 && this.#head * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head)
      this.#head = 0
    }
  }
}
