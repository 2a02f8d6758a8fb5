import { manualClock, type ManualClock } from '@skein/base'
import type { Timers } from '@skein/runtime'

interface Timer {
  readonly at: number
  readonly callback: () => void
}

/** Time that stays the same until the player moves it to the time of a recorded event. */
export class VirtualTime implements Timers {
  readonly measuresCalls = true
  readonly clock: ManualClock
  readonly #timers = new Set<Timer>()

  constructor(startMs: number) {
    this.clock = manualClock(startMs)
  }

  now(): number {
    return this.clock.now()
  }

  set(ms: number, callback: () => void): Timer {
    const timer = { at: this.now() + Math.max(ms, 0), callback }
    this.#timers.add(timer)
    return timer
  }

  clear(handle: unknown): void {
    this.#timers.delete(handle as Timer) // a handle is always a timer of `set`
  }

  /** Moves to a time, or to the first timer before it, which fires. Returns whether anything has changed. */
  moveTo(atMs: number): boolean {
    let first: Timer | undefined
    for (const timer of this.#timers)
      if (timer.at <= atMs && (!first || timer.at < first.at)) first = timer
    const target = first ? Math.max(first.at, this.now()) : atMs
    if (target > this.now()) this.clock.advance(target - this.now())
    if (!first) return false
    this.#timers.delete(first)
    first.callback()
    return true
  }

  /** Fires the first timer without moving the time, so that work which nothing waits for any more can end. */
  fireNext(): boolean {
    let first: Timer | undefined
    for (const timer of this.#timers) if (!first || timer.at < first.at) first = timer
    if (!first) return false
    this.#timers.delete(first)
    first.callback()
    return true
  }
}
