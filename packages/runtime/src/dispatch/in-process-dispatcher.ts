import type { Clock } from '@skein/base'
import { RuntimeError, StoppingError } from '../contract/error.ts'
import type { Store } from '../store/store.ts'
import {
  type Dispatcher,
  type Drain,
  type DrainEnd,
  FairQueue,
  type QueuedThread,
  systemTimers,
  type TimerHandle,
  type Timers,
} from './dispatcher.ts'

/** Options of `inProcessDispatcher`. */
export interface InProcessDispatcherOptions {
  readonly store: Pick<Store, 'due' | 'nextWake' | 'head'>
  /** The clock of the default timers. */
  readonly clock?: Clock
  readonly timers?: Timers
  /** On how many threads this process may work at once. Default 128. */
  readonly maxConcurrent?: number
  /**
   * How often the store is asked for due threads, on average, because other nodes write to it as well. By
   * default it is asked only when this process knows of a reason.
   */
  readonly sweepMs?: number | undefined
  /** Called with the error of the work on a thread (and the thread's id), and with errors of the store. */
  readonly onError?: (error: unknown, threadId?: string) => void
}

/**
 * Creates a dispatcher for one process. The wake-up times of threads are in the store, so no wake-up is lost
 * when the process ends. The dispatcher itself keeps a single timer, for the earliest wake-up.
 */
export function inProcessDispatcher(
  options: InProcessDispatcherOptions,
): Dispatcher & Required<Pick<Dispatcher, 'settled' | 'idle'>> {
  return new InProcessDispatcher(options)
}

/** How many due threads are read from the store at a time, besides those that are already known. */
const BATCH = 100
/** How long `stop` lets the work on threads continue by default. */
const GRACE_MS = 5000
/** How long `stop` waits for aborted work to end: longer than the grace of a write that runs. */
const ABORTED_MS = 10_000
/** How long a thread whose agent is missing waits before it is tried again, unless it is woken. */
const AGENT_MISSING_MS = 30_000
/** The largest number of threads whose tenant is kept in memory. */
const REMEMBERED = 10_000

interface Running {
  readonly controller: AbortController
  /** Whether the thread was woken while it was worked on. */
  again: boolean
}

interface Waiter {
  readonly isDone: () => boolean
  readonly resolve: () => void
}

class InProcessDispatcher implements Dispatcher {
  readonly #store: InProcessDispatcherOptions['store']
  readonly #timers: Timers
  readonly #maxConcurrent: number
  readonly #onError: (error: unknown, threadId?: string) => void
  #drain: Drain | undefined
  #isStopped = false
  /** Threads that wait to be worked on and whose tenant is not known yet. */
  readonly #arrived = new Set<string>()
  readonly #tenants = new Map<string, string>()
  readonly #queue = new FairQueue()
  readonly #running = new Map<string, Running>()
  /** Threads on which the work failed, or ended while they were still due. */
  readonly #retries = new RetryTable<string>()
  readonly #waiters = new Set<Waiter>()
  /** The earliest known wake-up time in the store. */
  #wakeAt = Infinity
  #timer: { readonly at: number; readonly handle: TimerHandle } | undefined
  #isAsking = false
  #asksAgain = false
  readonly #endedMeanwhile = new Set<string>()
  /** Whether the store may have more due threads than were read. */
  #hasBacklog = false
  /** Whether no work on a thread has ended since the store was last read. */
  #isFresh = false
  readonly #sweepMs: number
  #sweep: TimerHandle | undefined

  constructor(options: InProcessDispatcherOptions) {
    const { store, clock, timers, maxConcurrent = 128, onError, sweepMs = Infinity } = options
    this.#sweepMs = sweepMs
    this.#store = store
    this.#timers = timers ?? systemTimers(clock)
    this.#maxConcurrent = maxConcurrent
    this.#onError = onError ?? (() => {})
  }

  async start(drain: Drain): Promise<void> {
    if (this.#drain || this.#isStopped)
      throw new RuntimeError('This dispatcher was started before.', {
        code: 'RUNTIME_STOPPED',
        hint: 'Make a new one; a dispatcher starts once.',
      })
    const early = [...this.#arrived]
    this.#arrived.clear()
    this.#drain = drain
    await this.#ask()
    for (const threadId of early) this.wake(threadId)
    this.#armSweep()
  }

  #armSweep(): void {
    if (this.#sweepMs === Infinity || this.#isStopped) return
    // Randomised, so that the nodes do not all ask the store at once.
    const ms = this.#sweepMs * (0.67 + 0.66 * Math.random())
    this.#sweep = this.#timers.set(ms, () => {
      void this.#ask().finally(() => this.#armSweep())
    })
  }

  wake(threadId: string, at?: number): void {
    if (this.#isStopped) return
    if (at !== undefined && at > this.#timers.now()) {
      this.#wakeAt = Math.min(this.#wakeAt, at)
      this.#arm()
      return
    }
    const running = this.#running.get(threadId)
    if (running) running.again = true
    else this.#enqueue(threadId)
    this.#pump()
  }

  interrupt(threadId: string, reason: unknown): void {
    this.#running.get(threadId)?.controller.abort(reason)
  }

  settled(threadId: string): Promise<void> {
    // Before the start nothing can run, so queued threads are not waited for.
    return this.#wait(
      () => !this.#running.has(threadId) && (!this.#drain || !this.#isQueued(threadId)),
    )
  }

  idle(): Promise<void> {
    this.#isFresh = false
    void this.#ask()
    return this.#wait(() => this.#isIdle())
  }

  async stop({ graceMs = GRACE_MS }: { readonly graceMs?: number } = {}): Promise<void> {
    this.#isStopped = true
    if (this.#sweep !== undefined) this.#timers.clear(this.#sweep)
    this.#queue.clear()
    this.#arrived.clear()
    this.#arm()
    this.#notify()
    await this.#ended(graceMs)
    for (const { controller } of this.#running.values())
      controller.abort(new StoppingError(graceMs > 0))
    await this.#ended(ABORTED_MS)
  }

  /** Reads due threads from the store, one query at a time. */
  async #ask(): Promise<void> {
    this.#asksAgain = true
    if (this.#isAsking || !this.#drain) return
    this.#isAsking = true
    while (this.#asksAgain && !this.#isStopped) {
      this.#asksAgain = false
      await this.#takeDue()
    }
    this.#isAsking = false
    this.#pump()
  }

  async #takeDue(): Promise<void> {
    const now = this.#timers.now()
    const limit = this.#running.size + this.#waiting + this.#retries.size + BATCH
    this.#isFresh = true
    this.#endedMeanwhile.clear()
    this.#wakeAt = Infinity
    try {
      const due = await this.#store.due(now, limit)
      const next = await this.#store.nextWake(now)
      for (const id of due) if (this.#isNews(id)) this.#enqueue(id)
      this.#hasBacklog = due.length === limit
      this.#wakeAt = Math.min(this.#wakeAt, next ?? Infinity)
    } catch (error) {
      if (this.#isStopped) return
      this.#wakeAt = Math.min(this.#wakeAt, now + 1000)
      this.#report(error)
    }
  }

  /**
   * Whether a thread that the store reported as due is to be queued. Returns false if a drain (work on the
   * thread) runs or will be retried, and if one ended after the query, because that drain has seen newer data.
   */
  #isNews(id: string): boolean {
    return !this.#running.has(id) && !this.#retries.has(id) && !this.#endedMeanwhile.has(id)
  }

  #enqueue(threadId: string): void {
    this.#retries.take(threadId)
    if (this.#isQueued(threadId)) return
    const tenant = this.#tenants.get(threadId)
    if (tenant !== undefined) return this.#queue.add(threadId, tenant)
    this.#arrived.add(threadId)
    if (this.#drain) void this.#admit(threadId)
  }

  /** Moves a thread into the queue of its tenant. */
  async #admit(threadId: string): Promise<void> {
    let tenant = ''
    try {
      tenant = (await this.#store.head(threadId))?.tenant ?? ''
      // The tenant of a thread never changes.
      if (this.#tenants.size >= REMEMBERED) this.#tenants.clear()
      if (tenant !== '') this.#tenants.set(threadId, tenant)
    } catch (error) {
      if (!this.#isStopped) this.#report(error, threadId)
    }
    if (!this.#arrived.delete(threadId)) return
    this.#queue.add(threadId, tenant)
    this.#pump()
  }

  #isQueued(threadId: string): boolean {
    return this.#queue.has(threadId) || this.#arrived.has(threadId)
  }

  get #waiting(): number {
    return this.#queue.size + this.#arrived.size
  }

  /** Starts the work on queued threads, sets the timer, and resolves promises of `settled` and `idle`. */
  #pump(): void {
    const drain = this.#drain
    if (drain && !this.#isStopped)
      for (;;) {
        const next = this.#queue.take(this.#maxConcurrent - this.#running.size, this.#maxConcurrent)
        if (!next) break
        void this.#run(next, drain)
      }
    this.#arm()
    this.#notify()
  }

  async #run({ threadId, tenant }: QueuedThread, drain: Drain): Promise<void> {
    const running: Running = { controller: new AbortController(), again: false }
    const { signal } = running.controller
    this.#running.set(threadId, running)
    let isFailed = false
    let isDue = false
    let end: DrainEnd | void = undefined
    try {
      end = await this.#drainOnce(threadId, drain, signal)
      if (end?.type === 'failed') this.#report(end.error, threadId)
      isDue = await this.#isDue(threadId)
    } catch (error) {
      isFailed = true
      this.#report(error, threadId)
    }
    this.#running.delete(threadId)
    this.#queue.done(tenant)
    this.#isFresh = false
    if (this.#isAsking) this.#endedMeanwhile.add(threadId)
    if (!this.#isStopped) {
      const now = this.#timers.now()
      if (isFailed) this.#retries.add(threadId, now)
      else if (end?.type === 'held') this.#awaitOwner(threadId, now, { isDue, leftMs: end.leftMs })
      else if (end?.type === 'agent_missing')
        this.#retries.delay(threadId, now + AGENT_MISSING_MS, { isQuiet: true })
      else if (running.again) this.#enqueue(threadId)
      else if (!isDue) this.#retries.forget(threadId)
      // A thread that is still due is run again at once the first time, because a message may have arrived. After
      // that it has to wait, because work that always leaves its thread due would otherwise loop.
      else if (this.#retries.addOrRunNow(threadId, now)) this.#enqueue(threadId)
    }
    this.#pump()
    if (this.#waiting === 0 && (this.#running.size === 0 || this.#hasBacklog)) void this.#ask()
  }

  /**
   * Plans another try for a thread that another process works on: when the lease of that process ends or, where
   * sweeps run, after one sweep interval at the latest. `idle` then does not wait for the other process.
   */
  #awaitOwner(
    threadId: string,
    now: number,
    { isDue, leftMs }: { readonly isDue: boolean; readonly leftMs: number },
  ): void {
    const isSwept = this.#sweepMs < Infinity
    if (isSwept && !isDue) return this.#retries.forget(threadId)
    const at = now + Math.min(leftMs, this.#sweepMs)
    this.#retries.delay(threadId, at, { isQuiet: isSwept, isHeld: isSwept })
  }

  /** Works on a thread once. An error after an abort is not a failure. */
  async #drainOnce(threadId: string, drain: Drain, signal: AbortSignal): Promise<DrainEnd | void> {
    try {
      return await drain(threadId, signal)
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }

  async #isDue(threadId: string): Promise<boolean> {
    if (this.#isStopped) return false
    const wakeAt = (await this.#store.head(threadId))?.wakeAt ?? Infinity
    if (wakeAt <= this.#timers.now()) return true
    this.#wakeAt = Math.min(this.#wakeAt, wakeAt)
    return false
  }

  /** Sets the single timer to the earliest wake-up or retry. */
  #arm(): void {
    const at =
      this.#isStopped || !this.#drain ? Infinity : Math.min(this.#wakeAt, this.#retries.earliest())
    if (this.#timer?.at === at) return
    if (this.#timer) this.#timers.clear(this.#timer.handle)
    this.#timer = undefined
    if (at === Infinity) return
    const handle = this.#timers.set(Math.max(at - this.#timers.now(), 0), () => this.#ring())
    this.#timer = { at, handle }
  }

  #ring(): void {
    this.#timer = undefined
    for (const threadId of this.#retries.takeDue(this.#timers.now()))
      if (this.#retries.isHeld(threadId)) void this.#enqueueIfDue(threadId)
      else this.#enqueue(threadId)
    if (this.#wakeAt <= this.#timers.now()) void this.#ask()
    this.#pump()
  }

  /** Queues a thread that another process worked on, unless that process has finished the work meanwhile. */
  async #enqueueIfDue(threadId: string): Promise<void> {
    const isDue = await this.#isDue(threadId).catch(() => true)
    if (this.#isStopped || this.#running.has(threadId)) return
    if (isDue) this.#enqueue(threadId)
    else this.#retries.forget(threadId)
    this.#pump()
  }

  #isIdle(): boolean {
    if (this.#running.size > 0) return false
    if (this.#isStopped || !this.#drain) return true
    return this.#isFresh && !this.#isAsking && this.#waiting === 0 && !this.#retries.hasNext()
  }

  #wait(isDone: () => boolean): Promise<void> {
    if (isDone()) return Promise.resolve()
    return new Promise((resolve) => this.#waiters.add({ isDone, resolve }))
  }

  #notify(): void {
    for (const waiter of this.#waiters) {
      if (!waiter.isDone()) continue
      this.#waiters.delete(waiter)
      waiter.resolve()
    }
  }

  /** Resolves when no thread is worked on any more, or after `ms` milliseconds. */
  async #ended(ms: number): Promise<void> {
    if (this.#running.size === 0 || ms <= 0) return
    await new Promise<void>((resolve) => {
      const handle = this.#timers.set(ms, resolve)
      void this.#wait(() => this.#running.size === 0).then(() => {
        this.#timers.clear(handle)
        resolve()
      })
    })
  }

  /** Reports an error. A handler that throws must not stop the dispatcher. */
  #report(error: unknown, threadId?: string): void {
    try {
      this.#onError(error, threadId)
    } catch {
      // The error handler itself failed, and there is nowhere else to report to.
    }
  }
}

const FIRST_MS = 100
const LONGEST_MS = 30_000

interface Retry {
  /** The number of consecutive failures. */
  readonly count: number
  /** When to try again; Infinity while a try is running. */
  readonly at: number
  /** Whether `idle` need not wait for the next try. */
  readonly isQuiet?: boolean
  /** Whether another process works on the thread. */
  readonly isHeld?: boolean
}

/** When each key (a thread id) is tried again: after 100 ms, then twice as long each time, up to 30 s. */
class RetryTable<Key> {
  readonly #retries = new Map<Key, Retry>()

  /** The number of keys, including those that are being tried now. */
  get size(): number {
    return this.#retries.size
  }

  /** Whether the key waits to be tried again. */
  has(key: Key): boolean {
    return (this.#retries.get(key)?.at ?? Infinity) < Infinity
  }

  add(key: Key, now: number): void {
    const count = (this.#retries.get(key)?.count ?? 0) + 1
    const wait = Math.min(FIRST_MS * 2 ** (count - 1), LONGEST_MS)
    this.#retries.set(key, { count, at: now + wait })
  }

  /** Tries the key again at this time; its number of failures is kept. */
  delay(key: Key, at: number, kind: Pick<Retry, 'isQuiet' | 'isHeld'> = {}): void {
    this.#retries.set(key, { count: this.#retries.get(key)?.count ?? 0, at, ...kind })
  }

  isHeld(key: Key): boolean {
    return this.#retries.get(key)?.isHeld ?? false
  }

  /** Like `add`, but returns true the first time, when the key may be tried without waiting. */
  addOrRunNow(key: Key, now: number): boolean {
    const isFirst = !this.#retries.has(key)
    if (isFirst) this.#retries.set(key, { count: 0, at: Infinity })
    else this.add(key, now)
    return isFirst
  }

  /** Marks the key as being tried now; its number of failures is kept. */
  take(key: Key): void {
    const retry = this.#retries.get(key)
    if (retry) this.#retries.set(key, { ...retry, at: Infinity })
  }

  forget(key: Key): void {
    this.#retries.delete(key)
  }

  /** Whether a retry is planned that `idle` has to wait for. */
  hasNext(): boolean {
    return [...this.#retries.values()].some(({ at, isQuiet }) => at < Infinity && !isQuiet)
  }

  earliest(): number {
    let earliest = Infinity
    for (const { at } of this.#retries.values()) earliest = Math.min(earliest, at)
    return earliest
  }

  /** Returns the keys whose retry time has come, and marks them as being tried. */
  takeDue(now: number): readonly Key[] {
    const due = [...this.#retries].flatMap(([key, { at }]) => (at <= now ? [key] : []))
    for (const key of due) this.take(key)
    return due
  }
}
