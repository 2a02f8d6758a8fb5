import { type Clock, systemClock } from '@skein/base'

/** Runs one thread until it parks. Rejects when it cannot continue. */
export type Drain = (threadId: string, signal: AbortSignal) => Promise<DrainEnd | void>

/** Why a drain has left its thread due, or has ended it; undefined in most cases. */
export type DrainEnd =
  /** Another process works on the thread; its lease ends in `leftMs` unless it is renewed. */
  | { readonly type: 'held'; readonly leftMs: number }
  /** This process does not have the thread's agent, so the thread has to wait until a process has it. */
  | { readonly type: 'agent_missing' }
  /** The thread has failed because of this error and is parked: it is reported, and not tried again. */
  | { readonly type: 'failed'; readonly error: unknown }

/**
 * Wakes threads. It guarantees that a wake-up in the store is never forgotten, that at most one drain per
 * thread runs at a time, and that a failed drain is run again. A waiting thread is data in the store, never a
 * suspended function.
 */
export interface Dispatcher {
  /** Starts draining, beginning with the threads that are due in the store. */
  start(drain: Drain): Promise<void>
  /** Requests a drain of the thread, now or at a time in ms. Calling it repeatedly is harmless. */
  wake(threadId: string, at?: number): void
  /** Aborts the running drain of a thread, if one runs in this process. */
  interrupt(threadId: string, reason: unknown): void
  /** Resolves when no drain of this thread runs and none is queued. */
  settled(threadId: string): Promise<void>
  /** Resolves when nothing runs and nothing is due. */
  idle(): Promise<void>
  /** Starts no more drains; running drains may continue for `graceMs` and are then aborted. */
  stop(options?: { readonly graceMs?: number }): Promise<void>
}

/** The handle that `Timers.set` returns, for `clear`. */
export type TimerHandle = unknown

/** The clock and the timers of a dispatcher. Tests and simulations pass their own. */
export interface Timers extends Clock {
  set(ms: number, callback: () => void): TimerHandle
  clear(handle: TimerHandle): void
}

/** A longer delay overflows `setTimeout` and would fire immediately. */
const LONGEST_MS = 2 ** 31 - 1

/** Creates timers that do not keep the process alive. A timer for more than 24 days fires early. */
export function systemTimers(clock: Clock = systemClock): Timers {
  return {
    now: () => clock.now(),
    set: (ms, callback) => setTimeout(callback, Math.min(ms, LONGEST_MS)).unref(),
    clear: (handle) => clearTimeout(handle as NodeJS.Timeout),
  }
}
