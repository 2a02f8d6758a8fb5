import type { Clock } from '@skein/base'

export const MINUTE = 60_000

/** Limits the requests of accounts. */
export interface Buckets {
  /** Takes one token and returns 0, or returns the milliseconds until the next token is available. */
  take(account: string): number | Promise<number>
}

export interface BucketOptions {
  readonly perMinute: number
  readonly clock: Clock
  readonly maxAccounts?: number
}

interface Bucket {
  tokens: number
  filledAt: number
}

/**
 * Limits requests per account with token buckets that refill steadily. Kept in memory, with a bounded number
 * of accounts.
 */
export class TokenBuckets implements Buckets {
  readonly #perMinute: number
  readonly #clock: Clock
  readonly #maxAccounts: number
  readonly #buckets = new Map<string, Bucket>()

  constructor({ perMinute, clock, maxAccounts = 10_000 }: BucketOptions) {
    this.#perMinute = perMinute
    this.#clock = clock
    this.#maxAccounts = maxAccounts
  }

  get size(): number {
    return this.#buckets.size
  }

  take(account: string): number {
    if (this.#perMinute === Infinity) return 0
    const now = this.#clock.now()
    const bucket = this.#buckets.get(account) ?? { tokens: this.#perMinute, filledAt: now }
    const refill = (Math.max(0, now - bucket.filledAt) * this.#perMinute) / MINUTE
    bucket.tokens = Math.min(this.#perMinute, bucket.tokens + refill)
    bucket.filledAt = now
    // Moved to the end, so that the map is ordered by last use.
    this.#buckets.delete(account)
    this.#buckets.set(account, bucket)
    this.#forgetOldest()
    if (bucket.tokens < 1) return Math.ceil(((1 - bucket.tokens) * MINUTE) / this.#perMinute)
    bucket.tokens -= 1
    return 0
  }

  /**
   * Forgets the least recently used account when there are too many. Its next request then finds a full
   * bucket.
   */
  #forgetOldest(): void {
    if (this.#buckets.size <= this.#maxAccounts) return
    const [oldest] = this.#buckets.keys()
    if (oldest !== undefined) this.#buckets.delete(oldest)
  }
}
