/** Remembers that it rang until somebody listens. */
export class Bell {
  #hasRung = false
  #listener: (() => void) | undefined

  readonly ring = (): void => {
    this.#hasRung = true
    this.#listener?.()
    this.#listener = undefined
  }

  /** Forgets earlier rings. Look at what the bell is for after this, then wait. */
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
 * Lets a loop wait for one thing at a time without outliving its signal: when the gate closes, whatever
 * is waited for settles at once. It holds one listener however often the loop waits.
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
