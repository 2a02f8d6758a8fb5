import { RuntimeError, StoppingError } from '../contract/error.ts'
import type { Store } from '../store/store.ts'
import type { ThreadHead } from '../store/head.ts'
import {
  type Dispatcher,
  type Drain,
  type DrainEnd,
  FairQueue,
  SHARED_LEASE_MS,
  type TimerHandle,
  type Timers,
} from './dispatcher.ts'

/**
 * A distributed engine, as far as `engineDispatcher` uses it: it lets one of the nodes run a thread, now or later,
 * and another node if the first one dies. It need not prevent two runs of one thread at a time, because the store
 * gives a thread to one node at a time (a lease).
 */
export interface Engine {
  /** Connects this node to the engine. From now on the engine calls `run` for threads that any node has sent. */
  start(node: EngineNode): Promise<void>
  /** Asks the engine to have the thread run by some node. Rejects if the engine does not accept the request. */
  send(threadId: string, options: EngineSend): Promise<void>
  /** Aborts the work on a thread that another node runs, if the engine can find that node. */
  interrupt?(threadId: string, reason: string): void
  /** Disconnects this node. It is called when all runs of this node have ended. */
  stop(): Promise<void>
}

/** When a thread is to run. */
interface EngineSend {
  /** Default 0: now. */
  readonly delayMs?: number
  /** Requests for one thread with the same key may be merged into one, even if that one has run already. */
  readonly key?: string
}

/** This node, as the engine sees it. */
export interface EngineNode {
  /**
   * Works on a thread until it has to wait. If the result has `againMs`, the engine must let the thread run again
   * after that time. Rejects if this node is stopping: another node has to run the thread.
   */
  run(threadId: string): Promise<{ readonly againMs?: number }>
  /** Aborts the work on a thread, if it runs on this node. Returns whether it does. */
  interrupt(threadId: string, reason: unknown): boolean
}

/** Options of `engineDispatcher`. The first three come from the runtime. */
interface EngineDispatcherOptions {
  readonly store: Pick<Store, 'due' | 'head' | 'nextWake'>
  readonly timers: Timers
  readonly onError?: (error: unknown, threadId?: string) => void
  /** On how many threads this node may work at once. Default 128. */
  readonly maxConcurrent?: number
  readonly engine: Engine
  /** How often this node looks for threads in the store that nobody runs, on average. Default 1000 ms. */
  readonly sweepMs?: number
}

/**
 * Creates the dispatcher of one of several nodes. The engine decides when and where a thread runs; the store decides
 * whether it may. A wake-up that was lost between the two is found by a sweep (a regular search of the store), and
 * so is a thread whose owner died or froze. If the engine cannot be reached, the sweeps alone run the threads, so
 * that they are late but not stuck.
 */
export function engineDispatcher(options: EngineDispatcherOptions): Dispatcher {
  return new EngineDispatcher(options)
}

/** How many due threads one sweep reads from the store, besides those that this node runs. */
const BATCH = 100
/** How long a thread may stay due after a sweep has sent it to the engine, before this node runs it by itself. */
const RESCUE_MS = 2_000
/** How late the engine may be with a retry before a sweep takes it for lost, e.g. because it was sent in an outage. */
const LATE_MS = 1_000
/** The shortest time between two requests to the engine for one thread, so that a storm of messages costs little. */
const QUIET_MS = 50
/** How far the clocks of nodes may differ: the engine is asked again for a thread that is due within this time. */
const SKEW_MS = 5_000
/** How long a thread whose agent this node does not have waits before it is tried again. */
const AGENT_MISSING_MS = 30_000
const FIRST_RETRY_MS = 100
const LONGEST_RETRY_MS = 30_000
/** How long `stop` lets the work on threads continue by default. */
const GRACE_MS = 5000
/** How long `stop` waits for aborted work to end: longer than the grace of a write that runs. */
const ABORTED_MS = 10_000

interface Running {
  controller: AbortController
  /** Whether the thread was woken after its row in the store was read. */
  again: boolean
}

interface Found {
  readonly mark: string
  readonly since: number
}

interface Place {
  readonly take: () => void
  readonly refuse: (error: unknown) => void
}

class EngineDispatcher implements Dispatcher {
  readonly leaseMs: number = SHARED_LEASE_MS
  readonly isShared = true
  readonly #options: EngineDispatcherOptions
  readonly #maxConcurrent: number
  readonly #running = new Map<string, Running>()
  /** The number of running threads that are worked on now; the others wait for a free place. */
  #working = 0
  readonly #queue = new FairQueue()
  readonly #places = new Map<string, Place>()
  /** Threads that were sent to the engine a moment ago, and whether they were woken again since. */
  readonly #sent = new Map<string, { again: boolean }>()
  /** Threads on which the work failed, or ended while they were due: how often in a row, and when they run again. */
  readonly #retries = new Map<string, { readonly count: number; readonly at: number }>()
  /** Threads that the last sweep found, with a mark that identifies the wake-up of each. */
  #found = new Map<string, Found>()
  #drain: Drain | undefined
  #isStopped = false
  #stopping: Promise<void> | undefined
  #sweepTimer: TimerHandle | undefined
  #whenEnded: (() => void) | undefined

  constructor(options: EngineDispatcherOptions) {
    this.#options = options
    this.#maxConcurrent = options.maxConcurrent ?? 128
  }

  async start(drain: Drain): Promise<void> {
    if (this.#drain || this.#isStopped)
      throw new RuntimeError('This dispatcher was started before.', {
        code: 'RUNTIME_STOPPED',
        hint: 'Make a new one; a dispatcher starts once.',
      })
    this.#drain = drain
    await this.#options.engine.start({
      run: (threadId) => this.#run(threadId),
      interrupt: (threadId, reason) => this.#abort(threadId, reason),
    })
    await this.#sweep(0)
  }

  wake(threadId: string, at: number = 0): void {
    // Before the start nothing is sent to the engine; sweeps of the store find the thread as soon as it is due.
    if (this.#isStopped || !this.#drain) return
    const delayMs = at - this.#options.timers.now()
    if (delayMs > 0) {
      void this.#send(threadId, { delayMs, key: `at ${at}` })
      return
    }
    const known = this.#running.get(threadId) ?? this.#sent.get(threadId)
    if (known) known.again = true
    else void this.#request(threadId)
  }

  interrupt(threadId: string, reason: unknown): void {
    if (!this.#abort(threadId, reason)) this.#options.engine.interrupt?.(threadId, String(reason))
  }

  stop({ graceMs = GRACE_MS }: { readonly graceMs?: number } = {}): Promise<void> {
    this.#stopping ??= this.#stop(graceMs)
    return this.#stopping
  }

  async #stop(graceMs: number): Promise<void> {
    const { timers, engine } = this.#options
    this.#isStopped = true
    if (this.#sweepTimer !== undefined) timers.clear(this.#sweepTimer)
    this.#queue.clear()
    for (const { refuse } of this.#places.values()) refuse(stopping())
    await this.#ended(graceMs)
    for (const { controller } of this.#running.values())
      controller.abort(new StoppingError(graceMs > 0))
    await this.#ended(ABORTED_MS)
    await engine.stop()
  }

  #abort(threadId: string, reason: unknown): boolean {
    const running = this.#running.get(threadId)
    running?.controller.abort(reason)
    return running !== undefined
  }

  /** Sends a thread to the engine, and once more if it was woken meanwhile and nobody works on it. */
  async #request(threadId: string): Promise<void> {
    const { timers } = this.#options
    const sent = { again: false }
    this.#sent.set(threadId, sent)
    await this.#send(threadId, {})
    for (;;) {
      await new Promise<void>((resolve) => timers.set(QUIET_MS, resolve))
      if (!sent.again || this.#isStopped) break
      sent.again = false
      // A process that works on the thread reads what was committed before it ends, so it need not be told.
      const needsRun = await this.#options.store.head(threadId).then(
        (head) => head && dueIn(head, timers.now()) <= 0 && !isHeld(head, timers.now()),
        () => true,
      )
      if (needsRun) await this.#send(threadId, {})
    }
    this.#sent.delete(threadId)
  }

  async #send(threadId: string, options: EngineSend): Promise<void> {
    try {
      await this.#options.engine.send(threadId, options)
    } catch (error) {
      // The sweep finds the thread.
      if (!this.#isStopped) this.#report(error, threadId)
    }
  }

  /** Runs a thread on this node: see `EngineNode`. */
  async #run(threadId: string): Promise<{ readonly againMs?: number }> {
    if (this.#isStopped || !this.#drain) throw stopping()
    const before = this.#running.get(threadId)
    if (before) {
      // The engine gave up an earlier run that took too long for it, but that run still works on the thread.
      before.again = true
      return {}
    }
    const running: Running = { controller: new AbortController(), again: false }
    this.#running.set(threadId, running)
    try {
      return await this.#drainUntilParked(threadId, running, this.#drain)
    } finally {
      this.#running.delete(threadId)
      if (this.#running.size === 0) this.#whenEnded?.()
    }
  }

  async #drainUntilParked(
    threadId: string,
    running: Running,
    drain: Drain,
  ): Promise<{ readonly againMs?: number }> {
    const { store, timers } = this.#options
    for (let drains = 0; ; drains++) {
      running.again = false
      const head = await store.head(threadId)
      const left = head ? dueIn(head, timers.now()) : Infinity
      if (left > 0) {
        // No `await` comes between this check and the return, so a wake-up is either seen here or sent to the engine.
        if (running.again) continue
        this.#retries.delete(threadId)
        // For a later time, the commit that set the time has already sent a wake-up to the engine.
        return left <= SKEW_MS ? { againMs: left } : {}
      }
      if (this.#isStopped) return { againMs: 0 }
      // A thread that is still due is run again at once the first time, because a message may have arrived; after
      // that it has to wait, or work that always leaves its thread due would loop.
      if (drains > 1) return this.#retry(threadId)
      await this.#take(threadId, head?.tenant ?? '')
      let end: DrainEnd | void = undefined
      try {
        end = await drain(threadId, running.controller.signal)
        if (end?.type === 'failed') this.#report(end.error, threadId)
      } catch (error) {
        if (!running.controller.signal.aborted) {
          this.#report(error, threadId)
          return this.#retry(threadId)
        }
      } finally {
        this.#leave(head?.tenant ?? '')
      }
      if (end?.type === 'held') return { againMs: end.leftMs }
      if (end?.type === 'agent_missing') return this.#retry(threadId, AGENT_MISSING_MS)
      if (running.controller.signal.aborted) running.controller = new AbortController()
    }
  }

  /** Returns after what time a thread that could not continue runs again. A thread has one retry at a time. */
  #retry(threadId: string, wait?: number): { readonly againMs?: number } {
    const now = this.#options.timers.now()
    const { count = 0, at = 0 } = this.#retries.get(threadId) ?? {}
    if (at > now) {
      this.#retries.set(threadId, { count: count + 1, at })
      return {}
    }
    const againMs = wait ?? Math.min(FIRST_RETRY_MS * 2 ** count, LONGEST_RETRY_MS)
    this.#retries.set(threadId, { count: count + 1, at: now + againMs })
    return { againMs }
  }

  /** Waits until this node has a free place for the thread (see `maxConcurrent`); tenants take turns. */
  #take(threadId: string, tenant: string): Promise<void> {
    return new Promise((take, refuse) => {
      this.#places.set(threadId, { take, refuse })
      this.#queue.add(threadId, tenant)
      this.#pump()
    })
  }

  #leave(tenant: string): void {
    this.#working--
    this.#queue.done(tenant)
    this.#pump()
  }

  #pump(): void {
    for (;;) {
      const next = this.#queue.take(this.#maxConcurrent - this.#working, this.#maxConcurrent)
      if (!next) return
      this.#working++
      this.#places.get(next.threadId)?.take()
      this.#places.delete(next.threadId)
    }
  }

  /** Sends to the engine, or runs here, the threads that have been due for `overdueMs` and that nobody works on. */
  async #sweep(overdueMs: number): Promise<void> {
    const { store, timers, sweepMs = 1000 } = this.#options
    // Randomised, so that nodes that were started together do not all sweep at the same time.
    let wait = sweepMs * (0.5 + Math.random())
    try {
      const now = timers.now()
      const limit = this.#running.size + this.#retries.size + BATCH
      const due = (await store.due(now - overdueMs, limit)).filter((threadId) => {
        // The engine may run a retry a little late, so the sweep leaves such a thread alone until then.
        const retryAt = this.#retries.get(threadId)?.at ?? -Infinity
        return !this.#running.has(threadId) && retryAt + LATE_MS <= now
      })
      // Together: the threads of a node that died become due in the same moment, and none should wait for another.
      const heads = await Promise.all(due.map((threadId) => store.head(threadId)))
      const found = new Map<string, Found>()
      for (const head of heads) {
        if (!head || isHeld(head, now) || this.#running.has(head.id)) continue
        const { id: threadId } = head
        const mark = `${head.seq} ${head.epoch}`
        const before = this.#found.get(threadId)
        const since = before?.mark === mark ? before.since : now
        found.set(threadId, { mark, since })
        // A lease that has ended without a release was left by a node that died or froze. The engine may not
        // know that yet, and may hold back other runs of the thread meanwhile.
        if (head.lease || now - since >= RESCUE_MS) this.#rescue(threadId)
        // All nodes find the same threads; because of the key, the engine merges their requests into one run.
        else void this.#send(threadId, { key: `sweep ${mark} ${Math.floor(now / RESCUE_MS)}` })
      }
      this.#found = found
      // The lease of a node that died may end before the next regular sweep; its threads are to go on then.
      const next = (await store.nextWake(now)) ?? Infinity
      const jitter = Math.random() * QUIET_MS
      wait = Math.min(wait, Math.max(next - timers.now(), sweepMs / 10) + jitter)
    } catch (error) {
      if (!this.#isStopped) this.#report(error)
    }
    if (this.#isStopped) return
    this.#sweepTimer = timers.set(wait, () => void this.#sweep(sweepMs))
  }

  /** Runs a thread without the engine, if there is a free place. */
  #rescue(threadId: string): void {
    if (this.#running.size >= this.#maxConcurrent || this.#isStopped) return
    this.#run(threadId).then(
      ({ againMs }) =>
        againMs !== undefined && !this.#isStopped
          ? this.#send(threadId, { delayMs: againMs })
          : undefined,
      (error: unknown) => (this.#isStopped ? undefined : this.#report(error, threadId)),
    )
  }

  /** Resolves when no thread runs here any more, or after `ms` milliseconds. */
  async #ended(ms: number): Promise<void> {
    const { timers } = this.#options
    if (this.#running.size === 0 || ms <= 0) return
    await new Promise<void>((resolve) => {
      const handle = timers.set(ms, resolve)
      this.#whenEnded = () => {
        timers.clear(handle)
        resolve()
      }
    })
  }

  #report(error: unknown, threadId?: string): void {
    try {
      this.#options.onError?.(error, threadId)
    } catch {
      // The error handler itself failed, and there is nowhere else to report to.
    }
  }
}

function stopping(): RuntimeError {
  return new RuntimeError('The runtime is stopping.', { code: 'RUNTIME_STOPPED' })
}

/** The time until the thread is due, in ms; 0 or less if it is due, Infinity if it waits for a message. */
function dueIn({ wakeAt }: ThreadHead, now: number): number {
  return wakeAt === null ? Infinity : wakeAt - now
}

function isHeld({ lease }: ThreadHead, now: number): boolean {
  return lease !== null && lease.until > now
}
