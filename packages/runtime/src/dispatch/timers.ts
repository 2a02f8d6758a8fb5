import { systemClock, type Clock } from '@skein/base'

/** What `Timers.set` gives, to be handed back to `clear`. */
export type TimerHandle = unknown

/** Where time comes from and how it is waited for. Tests and simulations bring their own. */
export interface Timers extends Clock {
  set(ms: number, callback: () => void): TimerHandle
  clear(handle: TimerHandle): void
}

/** Longer waits than this overflow `setTimeout` and would end at once. */
const LONGEST_MS = 2 ** 31 - 1

/** The timers of the machine. They do not keep the process alive; a long one may fire too early. */
export function systemTimers(clock: Clock = systemClock): Timers {
  return {
    now: () => clock.now(),
    set: (ms, callback) => setTimeout(callback, Math.min(ms, LONGEST_MS)).unref(),
    clear: (handle) => clearTimeout(handle as NodeJS.Timeout),
  }
}
