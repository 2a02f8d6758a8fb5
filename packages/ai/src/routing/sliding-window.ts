import type { Clock } from '@skein/base'

/** Adds amounts up over the last so many milliseconds. Linear: each amount is added and dropped once. */
export class SlidingWindow {
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
