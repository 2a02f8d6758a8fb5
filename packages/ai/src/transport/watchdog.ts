/** The limit that was exceeded. */
export type TimeoutPhase = 'total' | 'headers' | 'firstByte' | 'idle'

/**
 * Enforces the time limits of one attempt. Since a stream arms and disarms the watchdog many times a
 * second, arming only stores a deadline; the one running timer checks the deadline when it fires.
 */
export class Watchdog {
  readonly #onTimeout: (phase: TimeoutPhase, ms: number) => void
  #total: ReturnType<typeof setTimeout> | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #phase: TimeoutPhase = 'headers'
  #limit = 0
  /**
   * The time on the `performance.now()` clock at which the current limit expires; Infinity while
   * disarmed.
   */
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
    // The running timer was set for a longer limit and would fire too late.
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
    // A rest of up to 1 ms is treated as expired, because a timer may fire slightly early.
    if (rest > 1) this.#timer = setTimeout(this.#look, rest)
    else this.#onTimeout(this.#phase, this.#limit)
  }
}
