/** A queue between several writers and one reader. Writers wait while it is full. */
export class MergeQueue<T> {
  readonly #capacity: number
  readonly #items: T[] = []
  readonly #waitingWriters: (() => void)[] = []
  #wakeReader: (() => void) | undefined
  #isClosed = false

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** Answers false when nobody reads any more. */
  async put(item: T): Promise<boolean> {
    while (!this.#isClosed && this.#items.length >= this.#capacity)
      await new Promise<void>((resolve) => this.#waitingWriters.push(resolve))
    if (this.#isClosed) return false
    this.#items.push(item)
    this.#wakeReader?.()
    return true
  }

  close(): void {
    this.#isClosed = true
    this.#wakeReader?.()
    for (const wake of this.#waitingWriters.splice(0)) wake()
  }

  /** Ends when closed and read to the end. */
  async *read(): AsyncGenerator<T, void, undefined> {
    for (;;) {
      while (this.#items.length > 0) {
        const item = this.#items.shift()! // there is one
        this.#waitingWriters.shift()?.()
        yield item
      }
      if (this.#isClosed) return
      await new Promise<void>((resolve) => (this.#wakeReader = resolve))
      this.#wakeReader = undefined
    }
  }
}
