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
  /** The shortest limit of the attempt. The timer is first set to it, so that no later limit needs a new timer. */
  readonly #shortest: number
  /** When the timer fires, on the `performance.now()` clock. */
  #firesAt = 0
  /**
   * The time on the `performance.now()` clock at which the current limit expires; Infinity while
   * disarmed.
   */
  #deadline = Infinity

  constructor(shortest: number, onTimeout: (phase: TimeoutPhase, ms: number) => void) {
    this.#shortest = shortest
    this.#onTimeout = onTimeout
  }

  start(totalMs: number | undefined): void {
    if (totalMs === undefined) return
    this.#total = setTimeout(() => this.#onTimeout('total', totalMs), totalMs)
  }

  arm(phase: TimeoutPhase, ms: number | undefined): void {
    if (ms === undefined) return
    const now = performance.now()
    this.#phase = phase
    this.#limit = ms
    this.#deadline = now + ms
    if (this.#timer !== undefined && this.#firesAt <= this.#deadline) return
    clearTimeout(this.#timer)
    const delay = Math.min(ms, this.#shortest)
    this.#firesAt = now + delay
    this.#timer = setTimeout(this.#look, delay)
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
    if (rest > 1) {
      this.#firesAt = this.#deadline
      this.#timer = setTimeout(this.#look, rest)
    } else this.#onTimeout(this.#phase, this.#limit)
  }
}
