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
