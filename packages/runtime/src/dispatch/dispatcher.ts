import { type Clock, systemClock } from '@skein/base'
import type { Store } from '../store/store.ts'
import type { ThreadHead } from '../store/head.ts'

/** Works on one thread until the thread has to wait ("parks"). Rejects when it cannot continue. */
export type Drain = (threadId: string, signal: AbortSignal) => Promise<DrainEnd | void>

/** The unusual ends of the work on a thread (a drain). If the thread simply has to wait, the end is undefined. */
export type DrainEnd =
  /** Another process works on the thread. Its lease (right to the thread) ends in `leftMs`, unless it is renewed. */
  | { readonly type: 'held'; readonly leftMs: number }
  /** This process does not have the thread's agent, so the thread has to wait until a process has it. */
  | { readonly type: 'agent_missing' }
  /** The thread has failed because of this error: the error is reported, and the thread is not tried again. */
  | { readonly type: 'failed'; readonly error: unknown }

/**
 * Wakes threads, i.e. starts drains, each of which works on one thread. It guarantees that a wake-up in the
 * store is never forgotten, that at most one drain per thread runs at a time, and that a failed drain is run
 * again. A waiting thread is data in the store, never a suspended function.
 */
export interface Dispatcher {
  /** How long a lease (the sole right of a process to a thread) lasts, unless `limits.leaseMs` is set. */
  readonly leaseMs?: number
  /**
   * Whether a wake-up reaches the other nodes that share the store by itself, so that they need not wake the thread
   * too when they hear of the commit. Default false.
   */
  readonly isShared?: boolean
  /** Starts the work on threads, beginning with those that are due in the store. */
  start(drain: Drain): Promise<void>
  /** Asks for a drain of the thread (work on it), now or at a time in ms. Calling it repeatedly is harmless. */
  wake(threadId: string, at?: number): void
  /** Aborts the running work on a thread: in this process, and elsewhere as far as the dispatcher can. */
  interrupt(threadId: string, reason: unknown): void
  /** Resolves when no work on this thread runs or is queued. Without this function, callers ask the store. */
  settled?(threadId: string): Promise<void>
  /** Resolves when nothing runs and nothing is due. Without this function, callers ask the store. */
  idle?(): Promise<void>
  /** Starts no more work on threads; running work may continue for `graceMs` and is then aborted. */
  stop(options?: { readonly graceMs?: number }): Promise<void>
}

/**
 * The length of leases where several nodes share a store. With it, the threads of a node that died go on elsewhere
 * within 10 s, including the time until a sweep finds them. A node that cannot renew its leases for two thirds of it
 * (5 s) ends its work on threads.
 */
export const SHARED_LEASE_MS = 7_500

/** How often the store is polled by callers that wait for a thread, if the dispatcher cannot tell them. */
const LOOK_MS = 25

/** Resolves when nobody works on this thread and no work on it is due, on any node. */
export async function settled(
  { dispatcher, store, timers }: WaitParts,
  threadId: string,
): Promise<void> {
  if (dispatcher.settled) return dispatcher.settled(threadId)
  const isBusy = async (): Promise<boolean> => {
    const { lease = null, wakeAt = null } = (await store.head(threadId)) ?? {}
    const now = timers.now()
    return (lease !== null && lease.until > now) || (wakeAt !== null && wakeAt <= now)
  }
  while (await isBusy()) await new Promise<void>((resolve) => timers.set(LOOK_MS, resolve))
}

/** Resolves when no thread runs or is due; if the dispatcher has no `idle`, when no thread is due. */
export async function idle({ dispatcher, store, timers }: WaitParts): Promise<void> {
  if (dispatcher.idle) return dispatcher.idle()
  while ((await store.due(timers.now(), 1)).length > 0)
    await new Promise<void>((resolve) => timers.set(LOOK_MS, resolve))
}

interface WaitParts {
  readonly dispatcher: Pick<Dispatcher, 'settled' | 'idle'>
  readonly store: Pick<Store, 'head' | 'due'>
  readonly timers: Timers
}

/** A notice that a node (process) sends to the other nodes of its store. Times and contents are only in the store. */
export type NodeNotice =
  /**
   * A commit has changed a thread. `seq` is the number of its last event, `isDue` says whether to work on it now,
   * and `drainedBy` is the process that works on the thread, if the commit is part of that work.
   */
  | {
      readonly type: 'committed'
      readonly threadId: string
      readonly seq: number
      readonly isDue: boolean
      readonly drainedBy?: string
    }
  /**
   * A thread was removed, or its log was replaced (erasure). `head` is its last row in the store, without title and
   * tags.
   */
  | { readonly type: 'removed'; readonly threadId: string; readonly head?: ThreadHead }
  /** The work on a thread has to end, wherever it runs. `reason` is for people; the log says what to do. */
  | { readonly type: 'interrupt'; readonly threadId: string; readonly reason: string }

/**
 * How the nodes that share a store tell one another what they have committed. Notices only save time: they are sent
 * after the commit and may arrive late, twice or not at all. Whatever they miss is found by regular searches of the
 * store (sweeps).
 */
export interface NodeLink {
  /** Sends a notice to all other nodes. It returns at once, and never throws; notices are sent in batches. */
  send(notice: NodeNotice): void
  /**
   * Begins to listen. `notice` is called with notices of other nodes. `gap` is called when some may have been
   * lost, e.g. after a new connection: every thread that somebody reads has to be looked up in the store.
   */
  start(listener: {
    readonly notice: (notice: NodeNotice) => void
    readonly gap: () => void
  }): Promise<void>
  stop(): Promise<void>
}

/** The handle that `Timers.set` returns, for `clear`. */
export type TimerHandle = unknown

/** The clock and the timers of a dispatcher. Tests and simulations pass their own. */
export interface Timers extends Clock {
  /**
   * Whether these timers also measure the time limits of calls, as in a run that is played back. By default the timers
   * of the platform do, because a call that runs is work outside.
   */
  readonly measuresCalls?: boolean
  set(ms: number, callback: () => void): TimerHandle
  clear(handle: TimerHandle): void
}

/** A longer delay overflows `setTimeout` and would fire immediately. */
const LONGEST_MS = 2 ** 31 - 1

/** Creates timers that do not keep the process alive. A timer for more than 24 days fires early. */
export function systemTimers(clock: Clock & Partial<SteadyClock> = systemClock): Timers {
  return {
    now: () => clock.now(),
    set(ms, callback) {
      // `setTimeout` drops fractions: the timer would fire early, and the clock would run ahead by each of them.
      const wholeMs = Math.ceil(ms)
      const at = wholeMs <= LONGEST_MS ? clock.now() + wholeMs : 0
      const ring = (): void => {
        clock.reach?.(at)
        callback()
      }
      return setTimeout(ring, Math.min(wholeMs, LONGEST_MS)).unref()
    },
    clear: (handle) => clearTimeout(handle as NodeJS.Timeout),
  }
}

/** A clock that never goes back while the process lives. */
export interface SteadyClock extends Clock {
  /** Records that a timer for this time has fired, so that the clock shows at least this time from now on. */
  reach(at: number): void
}

/**
 * Creates a clock that shows the time of `wall`, except after `wall` was set back: then it goes on from the
 * time that it has shown, as fast as `monotonic`, until `wall` has caught up. The wake-up times of threads are
 * times of day, so a clock that is set back by an hour would otherwise keep a timer of a second waiting for an
 * hour. Events also keep their order in time. After a restart of the process only `wall` is known, so wake-ups
 * then wait until `wall` shows their time. A wall clock that merely runs slowly is believed, because time
 * servers correct clocks that way.
 */
export function steadyClock(
  wall: Clock = systemClock,
  monotonic: () => number = () => performance.now(),
): SteadyClock {
  let last = { wall: wall.now(), time: wall.now(), monotonic: monotonic() }
  let isAhead = false
  const now = (): number => {
    const read = { wall: wall.now(), monotonic: monotonic() }
    isAhead ||= read.wall < last.wall
    const kept = last.time + Math.floor(read.monotonic - last.monotonic)
    if (isAhead && read.wall < kept) {
      // The fraction of a millisecond stays in `last`, so that frequent readings do not lose time.
      if (kept > last.time)
        last = { wall: read.wall, time: kept, monotonic: last.monotonic + kept - last.time }
      else last = { ...last, wall: read.wall }
      return last.time
    }
    isAhead = false
    last = { ...read, time: read.wall }
    return read.wall
  }
  return {
    now,
    reach(at) {
      // Timers follow the system's time alone. A clock that a test sets by hand may stand still, so it is not moved.
      if (wall !== systemClock || now() >= at) return
      isAhead = true
      last = { wall: wall.now(), time: at, monotonic: monotonic() }
    },
  }
}

/** A thread that was taken from the queue. */
export interface QueuedThread {
  readonly threadId: string
  readonly tenant: string
}

/** Threads that wait until one of the limited places to work is free, by arrival within each tenant. */
export class FairQueue {
  readonly #queues = new Map<string, Set<string>>()
  readonly #tenants = new Map<string, string>()
  readonly #working = new Map<string, number>()
  /** Whether threads of more than one tenant have been seen. */
  #isShared = false
  #firstTenant: string | undefined

  get size(): number {
    return this.#tenants.size
  }

  has(threadId: string): boolean {
    return this.#tenants.has(threadId)
  }

  add(threadId: string, tenant: string): void {
    if (this.has(threadId)) return
    this.#firstTenant ??= tenant
    this.#isShared ||= tenant !== this.#firstTenant
    const queue = this.#queues.get(tenant) ?? new Set()
    this.#queues.set(tenant, queue.add(threadId))
    this.#tenants.set(threadId, tenant)
  }

  clear(): void {
    this.#queues.clear()
    this.#tenants.clear()
  }

  /**
   * Takes the next thread for one of `free` places out of `all`, and counts it as working until `done`. The
   * place goes to the tenant with the fewest working threads; among equals, to the one that has waited
   * longest for its turn. As soon as there are several tenants, the last eighth of the places is kept for
   * tenants that have no thread working, so that a tenant with long runs cannot occupy everything.
   */
  take(free: number, all: number): QueuedThread | undefined {
    if (free <= 0) return undefined
    let best: string | undefined
    for (const tenant of this.#queues.keys())
      if (best === undefined || this.#count(tenant) < this.#count(best)) best = tenant
    if (best === undefined) return undefined
    const kept = this.#isShared ? Math.floor(all / 8) : 0
    if (free <= kept && this.#count(best) > 0) return undefined
    const queue = this.#queues.get(best)!
    const [threadId] = queue as Iterable<string> as [string] // an empty queue is removed
    queue.delete(threadId)
    this.#tenants.delete(threadId)
    this.#queues.delete(best)
    // The tenant is put back at the end: other tenants with as few working threads come first.
    if (queue.size > 0) this.#queues.set(best, queue)
    this.#working.set(best, this.#count(best) + 1)
    return { threadId, tenant: best }
  }

  /** A thread that was taken no longer works. */
  done(tenant: string): void {
    const count = this.#count(tenant) - 1
    if (count > 0) this.#working.set(tenant, count)
    else this.#working.delete(tenant)
  }

  #count(tenant: string): number {
    return this.#working.get(tenant) ?? 0
  }
}
