/** Which limit was hit. */
export type TimeoutPhase = 'total' | 'headers' | 'firstByte' | 'idle'

/**
 * The time limits of one attempt. A wait is armed and disarmed many times a second in a stream, so
 * it does not touch a timer: the one that runs looks, when it fires, whether there is still time.
 */
export class Watchdog {
  readonly #onTimeout: (phase: TimeoutPhase, ms: number) => void
  #total: ReturnType<typeof setTimeout> | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #phase: TimeoutPhase = 'headers'
  #limit = 0
  /** Infinity while nothing is waited for. */
  #deadline = Infinity

  constructor(onTimeout: (phase: TimeoutPhase, ms: number) => void) {
    this.#onTimeout = onTimeout
  }

  start(totalMs: number | undefined): void {
    if (totalMs === undefined) return
    this.#total = setTimeout(() => this.#onTimeout('total', totalMs), totalMs)
  }

  arm(phase: TimeoutPhase, ms: number | undefined): void {
    if (ms === undefined) return
    const deadline = performance.now() + ms
    // The running timer may fire too late for a shorter limit.
    if (this.#timer !== undefined && ms < this.#limit) {
      clearTimeout(this.#timer)
      this.#timer = undefined
    }
    this.#phase = phase
    this.#limit = ms
    this.#deadline = deadline
    this.#timer ??= setTimeout(this.#look, ms)
  }

  disarm(): void {
    this.#deadline = Infinity
  }

  stop(): void {
    this.#deadline = Infinity
    clearTimeout(this.#total)
    clearTimeout(this.#timer)
    this.#total = this.#timer = undefined
  }

  readonly #look = (): void => {
    this.#timer = undefined
    if (this.#deadline === Infinity) return
    const rest = this.#deadline - performance.now()
    // Timers may fire a fraction early.
    if (rest > 1) this.#timer = setTimeout(this.#look, rest)
    else this.#onTimeout(this.#phase, this.#limit)
  }
}
