import { type Clock, systemClock } from '@skein/base'

/** Runs one thread until it parks. Rejects when it cannot continue. */
export type Drain = (threadId: string, signal: AbortSignal) => Promise<void>

/**
 * Wakes threads. It guarantees three things: a wake-up in the store is never forgotten, at most one drain
 * per thread runs at a time, and a drain that failed is run again. A thread that waits is data in the
 * store, never a suspended function.
 */
export interface Dispatcher {
  /** Starts draining, beginning with the threads that the store says are due. */
  start(drain: Drain): Promise<void>
  /** Asks for a drain of the thread, now or at a time in ms. Repeating it is harmless. */
  wake(threadId: string, at?: number): void
  /** Aborts the running drain of a thread, if there is one here. */
  interrupt(threadId: string, reason: unknown): void
  /** Resolves when no drain of this thread runs and none is asked for now. */
  settled(threadId: string): Promise<void>
  /** Resolves when nothing runs and nothing is due. */
  idle(): Promise<void>
  /** Starts no more drains; running ones may go on for `graceMs` and are then aborted. */
  stop(options?: { readonly graceMs?: number }): Promise<void>
}

/** What `Timers.set` returns, for `clear`. */
export type TimerHandle = unknown

/** The clock and the timers of a dispatcher. Tests and simulations pass their own. */
export interface Timers extends Clock {
  set(ms: number, callback: () => void): TimerHandle
  clear(handle: TimerHandle): void
}

/** Longer waits than this overflow `setTimeout` and would end at once. */
const LONGEST_MS = 2 ** 31 - 1

/** Timers of the operating system. They do not keep the process alive; one beyond 24 days fires early. */
export function systemTimers(clock: Clock = systemClock): Timers {
  return {
    now: () => clock.now(),
    set: (ms, callback) => setTimeout(callback, Math.min(ms, LONGEST_MS)).unref(),
    clear: (handle) => clearTimeout(handle as NodeJS.Timeout),
  }
}
