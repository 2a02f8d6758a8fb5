const FIRST_MS = 100
const LONGEST_MS = 30_000

interface Retry {
  /** Times in a row. */
  readonly count: number
  /** Infinity while it is being tried. */
  readonly at: number
}

/** What is to be tried again, and when: after 100 ms, then twice as long each time, up to 30 s. */
export class RetryTable<Key> {
  readonly #retries = new Map<Key, Retry>()

  /** How many are known, also those that are being tried. */
  get size(): number {
    return this.#retries.size
  }

  /** Whether it waits to be tried again. */
  has(key: Key): boolean {
    return (this.#retries.get(key)?.at ?? Infinity) < Infinity
  }

  add(key: Key, now: number): void {
    const count = (this.#retries.get(key)?.count ?? 0) + 1
    const wait = Math.min(FIRST_MS * 2 ** (count - 1), LONGEST_MS)
    this.#retries.set(key, { count, at: now + wait })
  }

  /** As `add`, but true the first time: then it may be tried without a wait. */
  addOrRunNow(key: Key, now: number): boolean {
    const isFirst = !this.#retries.has(key)
    if (isFirst) this.#retries.set(key, { count: 0, at: Infinity })
    else this.add(key, now)
    return isFirst
  }

  /** It is being tried; how often it was is remembered. */
  take(key: Key): void {
    const retry = this.#retries.get(key)
    if (retry) this.#retries.set(key, { ...retry, at: Infinity })
  }

  forget(key: Key): void {
    this.#retries.delete(key)
  }

  earliest(): number {
    let earliest = Infinity
    for (const { at } of this.#retries.values()) earliest = Math.min(earliest, at)
    return earliest
  }

  /** Takes those whose time has come. */
  takeDue(now: number): readonly Key[] {
    const due = [...this.#retries].flatMap(([key, { at }]) => (at <= now ? [key] : []))
    for (const key of due) this.take(key)
    return due
  }
}
