import { HttpError } from '../operations/http-error.ts'
import { type Clock, sha256Hex } from '@skein/base'
import type { RuntimeNode } from '@skein/runtime/serving'
import { isStoreError } from '@skein/runtime'
import { MINUTE, type Buckets, type BucketOptions } from './token-buckets.ts'

/** How long a node may use tokens that it took for an account. */
const SHARE_MS = 2_000

const DAY_MS = 86_400_000

/** The names of the counters: `limit rate`, the day, and a hash of the account. */
const RATE = 'limit rate'

const MAX_TRIES = 100

interface Share {
  tokens: number
  /** When tokens that were not used are lost. */
  until: number
  /** How many tokens are taken from the store next time. */
  next: number
  /** Up to which time tokens are taken (see `SharedBuckets`): `counter` as last read, `stored` for `day` alone. */
  counter: number
  stored: number
  day: number
  /** No node gets a token before this time. */
  emptyUntil: number
  /** The requests that wait for the store. */
  asking: Promise<number> | undefined
}

/**
 * Limits requests per account over all nodes that share a store, so that together they admit no more than one server
 * would. A counter says up to which time, in microseconds, the tokens of an account are taken (the generic cell rate
 * algorithm); it only grows, so a node can raise it unless another node has done so since it was read. A busy node
 * takes several tokens together and uses them for `SHARE_MS`. In return the bucket holds fewer tokens: it leaves out
 * those that nodes may still have.
 */
export class SharedBuckets implements Buckets {
  readonly #clock: Clock
  readonly #perMinute: number
  readonly #maxAccounts: number
  readonly #kind: 'address' | 'client'
  readonly #store: RuntimeNode['store']
  readonly #shares = new Map<string, Share>()
  /** The microseconds that one token is worth, and how far the counter may be ahead of the clock. */
  readonly #cost: number
  readonly #ahead: number
  readonly #maxShare: number
  #day = 0

  constructor(
    { perMinute, clock, maxAccounts = 10_000 }: BucketOptions,
    kind: 'address' | 'client',
    store: RuntimeNode['store'],
  ) {
    this.#clock = clock
    this.#perMinute = perMinute
    this.#maxAccounts = maxAccounts
    this.#kind = kind
    this.#store = store
    this.#cost = Math.ceil((MINUTE * 1000) / perMinute)
    this.#maxShare = Math.max(1, Math.floor((perMinute * SHARE_MS) / MINUTE))
    const shareMs = this.#maxShare > 1 ? SHARE_MS * 1000 : 0
    this.#ahead = this.#cost * perMinute - shareMs
  }

  take(account: string): number | Promise<number> {
    if (this.#perMinute === Infinity) return 0
    const share = this.#shareOf(account)
    const now = this.#clock.now()
    if (share.tokens > 0 && now < share.until) {
      share.tokens -= 1
      return 0
    }
    if (now < share.emptyUntil) return share.emptyUntil - now
    return this.#takeMore(account, share)
  }

  #shareOf(account: string): Share {
    const share = this.#shares.get(account) ?? {
      tokens: 0,
      until: 0,
      next: 1,
      counter: 0,
      stored: 0,
      day: 0,
      emptyUntil: 0,
      asking: undefined,
    }
    // Moved to the end, so that the map is ordered by last use.
    this.#shares.delete(account)
    this.#shares.set(account, share)
    const [oldest] = this.#shares.keys()
    if (this.#shares.size > this.#maxAccounts && oldest !== undefined) this.#shares.delete(oldest)
    return share
  }

  /** Takes more tokens from the store. Requests that arrive meanwhile wait for the same answer. */
  async #takeMore(account: string, share: Share): Promise<number> {
    const isFirst = share.asking === undefined
    share.asking ??= this.#ask(account, share).finally(() => (share.asking = undefined))
    const waitMs = await share.asking
    return isFirst || waitMs > 0 ? waitMs : this.take(account)
  }

  /** Takes tokens from the bucket of all nodes. The first is for the caller. */
  async #ask(account: string, share: Share): Promise<number> {
    const isUsedUp = share.tokens === 0 && this.#clock.now() < share.until
    share.next = isUsedUp ? Math.min(share.next * 2, this.#maxShare) : Math.max(1, share.next >> 1)
    share.tokens = 0
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const now = this.#clock.now()
      const day = Math.floor(now / DAY_MS)
      if (day !== this.#day) await this.#forget(day)
      if (share.day !== day) await this.#read(account, share, day)
      const from = Math.max(share.counter, now * 1000)
      const free = Math.floor((now * 1000 + this.#ahead - from) / this.#cost)
      // A busy node waits until it gets several tokens, or each token would cost a commit.
      const least = Math.min(share.next, Math.ceil(this.#maxShare / 4))
      if (free < least) {
        const waitMs = Math.ceil((from + least * this.#cost - this.#ahead) / 1000) - now
        share.emptyUntil = now + waitMs
        return waitMs
      }
      const count = Math.min(free, share.next)
      const after = from + count * this.#cost
      if (await this.#raise(account, share, after)) {
        share.tokens = count - 1
        share.until = now + SHARE_MS
        return 0
      }
      await this.#read(account, share, day)
    }
    throw new HttpError('The limits of requests cannot be counted at the moment.', {
      code: 'NOT_READY',
      headers: { 'retry-after': '1' },
    })
  }

  /** Raises the counter, unless another node has raised it since it was read. */
  async #raise(account: string, share: Share, to: number): Promise<boolean> {
    const { stored, day } = share
    const counters = [{ name: this.#name(account, day), add: to - stored, below: stored + 1 }]
    try {
      await this.#store.commit({ point: 'rate', isLazy: true, threads: [], counters })
    } catch (error) {
      if (isStoreError(error, 'LIMIT_REACHED')) return false
      throw error
    }
    share.stored = share.counter = to
    return true
  }

  /** Reads the counter. At the beginning of a day, the counter of the day before still counts. */
  async #read(account: string, share: Share, day: number): Promise<void> {
    const read = async (of: number): Promise<number> => {
      const name = this.#name(account, of)
      return (await this.#store.counters(name)).get(name) ?? 0
    }
    const storedCount = await read(day)
    share.counter = storedCount > 0 ? storedCount : await read(day - 1)
    share.stored = storedCount
    share.day = day
  }

  /** Returns the name of a counter. Addresses share a million counters, because anybody can have many addresses. */
  #name(account: string, day: number): string {
    const hash = sha256Hex(`${this.#kind} ${account}`).slice(0, this.#kind === 'address' ? 5 : 32)
    return `${RATE} ${day} ${this.#kind} ${hash}`
  }

  /** Removes the counters of days that are over. */
  async #forget(day: number): Promise<void> {
    this.#day = day
    const old = [...(await this.#store.counters(`${RATE} `)).keys()].filter(
      (name) => Number(name.split(' ')[2]) < day - 1,
    )
    const counters = old.map((name) => ({ name, add: null }))
    if (old.length > 0)
      await this.#store.commit({ point: 'rate_forget', isLazy: true, threads: [], counters })
  }
}
