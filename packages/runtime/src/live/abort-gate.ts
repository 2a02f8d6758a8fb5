/**
 * Lets a loop wait for one promise after the other until a signal aborts; `close` ends the current
 * wait. It adds only one listener to the signal, however often the loop waits.
 */
export class AbortGate {
  #isClosed = false
  #release: (() => void) | undefined
  readonly #signal: AbortSignal | undefined
  readonly #close = (): void => this.close()

  constructor(signal?: AbortSignal) {
    this.#signal = signal
    if (signal?.aborted) this.#isClosed = true
    else signal?.addEventListener('abort', this.#close, { once: true })
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Resolves to the value of the promise, or to undefined once the gate is closed. */
  through<T>(promise: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      promise.then(resolve, reject)
      if (this.#isClosed) return resolve(undefined)
      this.#release = () => resolve(undefined)
    })
  }

  close(): void {
    this.#isClosed = true
    this.#signal?.removeEventListener('abort', this.#close)
    this.#release?.()
    this.#release = undefined
  }
}
