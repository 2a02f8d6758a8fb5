/**
 * Waits for one promise at a time, but only until the signal aborts. Later results are dropped and later
 * rejections are handled. All waits share one abort listener.
 */
export class AbortRace {
  readonly #signal: AbortSignal
  readonly #toError: () => Error
  #reject: ((error: Error) => void) | undefined
  readonly #onAbort = (): void => this.#reject?.(this.#toError())

  constructor(signal: AbortSignal, toError: () => Error) {
    this.#signal = signal
    this.#toError = toError
    signal.addEventListener('abort', this.#onAbort)
  }

  throwIfAborted(): void {
    if (this.#signal.aborted) throw this.#toError()
  }

  run<T>(work: PromiseLike<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#reject = reject
      work.then(resolve, reject)
      if (this.#signal.aborted) reject(this.#toError())
    })
  }

  /** Yields the items of a source. An abort, or leaving the loop, closes the source. */
  async *each<T>(source: AsyncIterable<T>): AsyncGenerator<T, void, undefined> {
    const items = source[Symbol.asyncIterator]()
    let isDone = false
    try {
      for (;;) {
        const step = await this.run(items.next())
        if ((isDone = step.done === true)) return
        yield step.value
      }
    } finally {
      if (!isDone) void letGo(items)
    }
  }

  dispose(): void {
    this.#reject = undefined
    this.#signal.removeEventListener('abort', this.#onAbort)
  }
}

/** Closes a source that has no reader any more. Errors while closing are ignored. */
export async function letGo(source: AsyncIterator<unknown, unknown>): Promise<void> {
  try {
    await source.return?.()
  } catch {
    // The outcome of the call is already known, so this error is ignored.
  }
}

/** Returns a source that throws this error when it is first read. */
// oxlint-disable-next-line require-yield -- it has nothing to yield
export async function* failing(error: unknown): AsyncGenerator<never, never, undefined> {
  throw error
}
