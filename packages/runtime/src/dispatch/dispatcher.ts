import { type Clock, systemClock } from '@skein/base'

/** Does the work of one thread until it parks. Rejects when it could not go on. */
export type Drain = (threadId: string, signal: AbortSignal) => Promise<void>

/**
 * Wakes threads. It promises three things only: a wake-up is not forgotten while the store wants one,
 * at most one drain per thread runs at a time, and a drain that died is run again. Waiting is data in
 * the store, never a suspended function.
 */
export interface Dispatcher {
  /** Begins to drain, first whatever the store says is due. */
  start(drain: Drain): Promise<void>
  /** Asks for a drain of the thread, now or at a time in ms. Repeating it is harmless. */
  wake(threadId: string, at?: number): void
  /** Aborts the running drain of a thread, if there is one here. */
  interrupt(threadId: string, reason: unknown): void
  /** Resolves when no drain of this thread runs and none is asked for now. */
  settled(threadId: string): Promise<void>
  /** Resolves when nothing runs and nothing is due. */
  idle(): Promise<void>
  /** Takes no new work; running drains get `graceMs` and are then aborted. */
  stop(options?: { readonly graceMs?: number }): Promise<void>
}

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
