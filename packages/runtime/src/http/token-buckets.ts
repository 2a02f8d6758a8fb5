import type { Clock } from '@skein/base'

const MINUTE = 60_000

interface Bucket {
  tokens: number
  filledAt: number
}

/** Counts requests per account in buckets that refill steadily. Memory of this process, bounded. */
export class TokenBuckets {
  readonly #perMinute: number
  readonly #clock: Clock
  readonly #maxAccounts: number
  readonly #buckets = new Map<string, Bucket>()

  constructor({
    perMinute,
    clock,
    maxAccounts = 10_000,
  }: {
    readonly perMinute: number
    readonly clock: Clock
    readonly maxAccounts?: number
  }) {
    this.#perMinute = perMinute
    this.#clock = clock
    this.#maxAccounts = maxAccounts
  }

  get size(): number {
    return this.#buckets.size
  }

  /** Takes one token. Answers 0, or the ms until there is one. */
  take(account: string): number {
    if (this.#perMinute === Infinity) return 0
    const now = this.#clock.now()
    const bucket = this.#buckets.get(account) ?? { tokens: this.#perMinute, filledAt: now }
    const refill = (Math.max(0, now - bucket.filledAt) * this.#perMinute) / MINUTE
    bucket.tokens = Math.min(this.#perMinute, bucket.tokens + refill)
    bucket.filledAt = now
    // Put at the end, so that the map is ordered by last use.
    this.#buckets.delete(account)
    this.#buckets.set(account, bucket)
    this.#forgetOldest()
    if (bucket.tokens < 1) return Math.ceil(((1 - bucket.tokens) * MINUTE) / this.#perMinute)
    bucket.tokens -= 1
    return 0
  }

  /** One that is forgotten early begins with a full bucket: better than memory without end. */
  #forgetOldest(): void {
    if (this.#buckets.size <= this.#maxAccounts) return
    const [oldest] = this.#buckets.keys()
    if (oldest !== undefined) this.#buckets.delete(oldest)
  }
}
