/** A signal between one writer and one waiting reader. A ring without a waiter is remembered. */
export class Bell {
  #hasRung = false
  #listener: (() => void) | undefined

  readonly ring = (): void => {
    this.#hasRung = true
    this.#listener?.()
    this.#listener = undefined
  }

  /** Forgets earlier rings. Call it before looking for news, or a ring in between would be lost. */
  mute(): void {
    this.#hasRung = false
  }

  rung(): Promise<void> {
    if (this.#hasRung) return Promise.resolve()
    return new Promise((resolve) => {
      this.#listener = resolve
    })
  }
}

/**
 * Lets a loop wait for one promise at a time until a signal aborts: when the gate closes, the current wait
 * resolves at once. It adds one listener to the signal, however often the loop waits.
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

  /** The value of the promise, or undefined once the gate is closed. */
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
