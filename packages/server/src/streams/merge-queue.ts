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

  /** Adds an item, waiting while the queue is full. Returns false when the queue was closed. */
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

  /** Yields the items; ends when the queue is closed and empty. */
  async *read(): AsyncGenerator<T, void, undefined> {
    for (;;) {
      while (this.#items.length > 0) {
        const item = this.#items.shift()! // the queue is not empty
        this.#waitingWriters.shift()?.()
        yield item
      }
      if (this.#isClosed) return
      await new Promise<void>((resolve) => (this.#wakeReader = resolve))
      this.#wakeReader = undefined
    }
  }
}
