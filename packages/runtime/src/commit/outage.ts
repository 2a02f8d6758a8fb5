import { isUnwritable } from '../store/store-error.ts'

/**
 * Remembers that the store cannot be written (see `isUnwritable`). While that lasts, nothing can be committed that
 * would end a wait, so callers that wait for a thread get the store's error instead of waiting for ever.
 */
export class Outage {
  #error: unknown
  readonly #waiting = new Set<AbortController>()

  /** Called with every error of background work. */
  note(error: unknown): void {
    if (!isUnwritable(error)) return
    this.#error = error
    for (const controller of this.#waiting) controller.abort(error)
  }

  /** Called when a commit has succeeded. */
  end(): void {
    this.#error = undefined
  }

  /** Runs `wait` with a signal that aborts when the store cannot be written or when the caller's signal aborts. */
  async guard<T>(
    signal: AbortSignal | undefined,
    wait: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    if (this.#error !== undefined) throw this.#error
    const controller = new AbortController()
    this.#waiting.add(controller)
    try {
      return await wait(signal ? AbortSignal.any([signal, controller.signal]) : controller.signal)
    } finally {
      this.#waiting.delete(controller)
    }
  }
}
