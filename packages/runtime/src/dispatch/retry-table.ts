const FIRST_MS = 100
const LONGEST_MS = 30_000

interface Retry {
  /** Failures in a row. */
  readonly count: number
  /** When to try again; Infinity while the try runs. */
  readonly at: number
}

/** When to retry which key: after 100 ms, then twice as long each time, up to 30 s. */
export class RetryTable<Key> {
  readonly #retries = new Map<Key, Retry>()

  /** Number of keys, with those that are being tried now. */
  get size(): number {
    return this.#retries.size
  }

  /** Whether the key waits to be tried again. */
  has(key: Key): boolean {
    return (this.#retries.get(key)?.at ?? Infinity) < Infinity
  }

  add(key: Key, now: number): void {
    const count = (this.#retries.get(key)?.count ?? 0) + 1
    const wait = Math.min(FIRST_MS * 2 ** (count - 1), LONGEST_MS)
    this.#retries.set(key, { count, at: now + wait })
  }

  /** As `add`; returns true the first time, when the key may be tried without waiting. */
  addOrRunNow(key: Key, now: number): boolean {
    const isFirst = !this.#retries.has(key)
    if (isFirst) this.#retries.set(key, { count: 0, at: Infinity })
    else this.add(key, now)
    return isFirst
  }

  /** Marks the key as being tried now; the number of its failures is kept. */
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

  /** The keys whose time has come, marked as being tried. */
  takeDue(now: number): readonly Key[] {
    const due = [...this.#retries].flatMap(([key, { at }]) => (at <= now ? [key] : []))
    for (const key of due) this.take(key)
    return due
  }
}
