import { unlessHeldWriteLost } from '../commit/held-writes.ts'
import { isStop } from '../contract/abort-reason.ts'
import type { KernelEnvironment } from '../context/environment.ts'
import { RuntimeError } from '../contract/error.ts'
import type { Drain, DrainEnd, Timers } from '../dispatch/dispatcher.ts'
import { CrashQuarantine, deathCause } from '../recovery/crash-quarantine.ts'
import type { KeptLease, LeaseKeeper } from '../recovery/lease.ts'
import type { GatePlace, TrialGate } from '../recovery/trial-gate.ts'
import { awaitAgent, missingHere } from '../recovery/missing-agent.ts'
import { failStuck, failWithoutProgress } from '../recovery/stuck.ts'
import { failureCause } from '../contract/failure-cause.ts'
import { park } from '../actions/park.ts'
import { tellParent } from '../children/tell-parent.ts'
import { KernelFold } from '../state/fold.ts'
import type { FoldMemory } from '../state/fold-cache.ts'
import { isStoreError } from '../store/store-error.ts'
import { rememberRedactor } from '../telemetry/logger.ts'
import { EventLoopYield } from './event-loop-yield.ts'
import type { KernelAction } from '../state/kernel-action.ts'
import { next } from './next.ts'
import { nameOfAction, perform } from './perform.ts'
import { ThreadContext } from './thread-context.ts'

/** What all drains of a process share. */
export interface DrainParts {
  readonly leases: LeaseKeeper
  readonly gate: TrialGate
  readonly timers: Timers
  readonly memory?: FoldMemory
}

/**
 * Returns the function that drains a thread: it claims the thread, computes its state from its log,
 * asks `next` for an action and performs it, until nothing is left to do. It ends without an error when another
 * drain has claimed the thread meanwhile, because the store then accepts no more commits of the earlier one.
 */
export function createDrain(environment: KernelEnvironment, parts: DrainParts): Drain {
  const { leases, gate, timers, memory } = parts
  const yields = new EventLoopYield(environment)
  return async (threadId, signal) => {
    const place = gate.arrive()
    try {
      // Claim: only one drain at a time works on a thread.
      const lease = await leases.claim(threadId, signal)
      if (!lease) return undefined
      if ('heldBy' in lease) return { type: 'held', leftMs: lease.leftMs }
      const { logId } = lease.claim.head
      const fold = memory?.take(threadId, logId) ?? new KernelFold()
      const drain = new ThreadDrain(environment, { lease, place, timers, fold, yields })
      const { writer, trace } = drain.context
      let isKept = false
      let failure: unknown
      try {
        // Work.
        const end = await drain.run()
        // A commit that failed while the work was aborted leaves events in the folded state that are not in the log.
        isKept = writer.fold.ahead === 0
        if (isKept) memory?.put(threadId, logId, writer.fold)
        return end
      } catch (error) {
        // Fail. Once another process or drain has claimed the thread, any error here is only a
        // consequence of that, so it is not reported.
        if (writer.isFenced || isStoreError(error, 'FENCED')) return undefined
        failure = error
        rememberRedactor(error, (text) => drain.context.redactor()?.text(text) ?? text)
        if (signal.aborted || !isStrike(error)) throw error
        // The lease was lost: the process that holds it now continues the thread.
        if (lease.signal.aborted) return undefined
        return await drain.countStrike(error)
      } finally {
        // Leave.
        if (!isKept) memory?.drop(threadId, logId, fold)
        trace?.close(failure)
        drain.quarantine.stop()
        lease.end()
        // Giving the lease back shows that this process did not die, so no death is counted against the
        // thread. If the store cannot be reached, the lease expires.
        if (!writer.isReleased) await leases.release(threadId).catch(() => undefined)
      }
    } finally {
      place.leave()
    }
  }
}

/**
 * Whether an error counts against its thread, which fails after several such errors. Failures of the
 * store are not the thread's fault, and a log of a later version is left to a program that can read it.
 */
function isStrike(error: unknown): boolean {
  if (isStoreError(error)) return !error.code.startsWith('STORE_')
  return !(error instanceof RuntimeError && error.code === 'LOG_VERSION')
}

/**
 * How long a drain waits before it looks again whether subagents have stopped. A subagent that reports to its parent
 * wakes the parent earlier; one that is further down does not.
 */
const LOOK_AGAIN_MS = 250

/** The actions whose first step is a commit, so that an earlier write can be held and written with it. */
const COMMITS_FIRST: ReadonlySet<KernelAction['type']> = new Set([
  'end_step',
  'park',
  'run_calls', // calls commit their start before they run
] as const)

interface OwnParts extends Pick<DrainParts, 'timers'> {
  readonly lease: KeptLease
  readonly place: GatePlace
  readonly fold: KernelFold
  readonly yields: EventLoopYield
}

/** One stretch of work on one thread, from its claim until the thread has to wait. */
class ThreadDrain {
  readonly context: ThreadContext
  readonly quarantine: CrashQuarantine
  readonly #yields: EventLoopYield
  /** When it is time to look again whether subagents have stopped, for which a session that fails waits. */
  #looksAt: number | undefined

  constructor(environment: KernelEnvironment, { lease, place, fold, timers, yields }: OwnParts) {
    const onProgress = (): void => this.quarantine.clear()
    this.context = new ThreadContext(environment, { lease, fold, onProgress })
    const { head, writer } = this.context
    const write = (lease: 'quarantined' | 'survived'): Promise<void> =>
      writer.changeRow(lease, { lease })
    this.quarantine = new CrashQuarantine({ head, place, timers, write })
    this.#yields = yields
  }

  /** Works until nothing is left to do. Held writes are committed even after an error. */
  async run(): Promise<DrainEnd | undefined> {
    const { context } = this
    const { writer } = context
    try {
      const end = (await this.#enter()) ? await this.#work() : undefined
      await writer.finish()
      return end
    } catch (error) {
      await writer.commitHeld().catch(() => undefined)
      const isAgentMissing = error instanceof RuntimeError && error.code === 'AGENT_NOT_FOUND'
      const missing = isAgentMissing ? missingHere(context.state, context.environment) : undefined
      if (!missing || writer.isFenced || context.signal.aborted) throw error
      // The definitions were replaced during the work on the thread, and the new ones lack the thread's agent.
      await awaitAgent(context, missing)
      await writer.finish()
      return { type: 'agent_missing' }
    }
  }

  /** Reads the log and waits until the thread may work. Returns false if the thread is given up instead. */
  async #enter(): Promise<boolean> {
    const { context, quarantine } = this
    await context.catchUp()
    const { limits, spending } = context.environment
    await spending?.settleLost(context.head)
    if (quarantine.attempts >= limits.drainAttempts) {
      await failStuck(context, deathCause(context.state))
      return false
    }
    if (await quarantine.enter(context.state, context.signal)) await context.catchUp()
    return true
  }

  /** The loop: asks `next` for an action and performs it, until `next` says that the thread has to wait. */
  async #work(): Promise<DrainEnd | undefined> {
    const { context } = this
    let last: { readonly seq: number; readonly action: string } | undefined
    for (;;) {
      const pause = this.#yields.due()
      if (pause) await pause

      // Decide, from the log as it is now.
      await context.writer.awaitCommits()
      const { environment, epoch, state, writer } = context
      const { clock, limits, registry } = environment
      const missing = missingHere(state, environment)
      const agent = missing ? undefined : registry.agents.get(state.agent)
      const action = next(state, { agent, epoch, now: clock.now(), limits, looksAt: this.#looksAt })
      if (this.#mustLeave(action)) return undefined
      if (writer.holdsWrites && !COMMITS_FIRST.has(action.type)) {
        await writer.commitHeld()
        continue // the log may have got other events first
      }

      // Leave: the thread waits for its agent, for an answer, a message or a time.
      if (action.type === 'await_agent') {
        await awaitAgent(context, missing!) // `next` returns this action only without an agent
        return { type: 'agent_missing' }
      }
      if (action.type === 'park') {
        if (await unlessHeldWriteLost(() => park(context, action))) return undefined
        continue
      }

      // Perform. The actions `close` and `cascade` end the session and report to the parent by themselves.
      if (action.type !== 'close' && action.type !== 'cascade' && (await tellParent(context)))
        continue
      // `next` is pure: if an action changed nothing in the log, `next` would return it again and again.
      const current = { seq: context.state.seq, action: nameOfAction(action) }
      if (last?.seq === current.seq && last.action === current.action) {
        if (await failWithoutProgress(context, current.action)) return undefined
        continue
      }
      // An action that only looks at other threads may come again: the thread parks in between.
      last = action.type === 'end_failing' ? undefined : current
      const work = () => perform(context, action)
      const result = await unlessHeldWriteLost(() => context.trace?.perform(work) ?? work())
      if (result === 'look_later') this.#looksAt = clock.now() + LOOK_AGAIN_MS
    }
  }

  /**
   * Whether the work has to end without performing the action. After a stop or a termination, only actions that end
   * something are still performed, and after a shutdown none, because every other action would be aborted immediately.
   */
  #mustLeave({ type }: KernelAction): boolean {
    const { signal } = this.context
    if (!signal.aborted) return false
    const isClosing = type === 'close' || type === 'park' || type === 'cascade'
    return !(isClosing && isStop(signal.reason))
  }

  /**
   * Counts an error of the work against its thread, and rethrows the error so that the work is tried
   * again later. After `drainAttempts` such errors without progress, the thread fails instead.
   */
  async countStrike(error: unknown): Promise<DrainEnd> {
    const { context, quarantine } = this
    const attempts = quarantine.attempts + 1
    try {
      if (attempts >= context.environment.limits.drainAttempts) {
        quarantine.attempts = attempts
        await context.catchUp()
        await failStuck(context, failureCause(error))
        return { type: 'failed', error }
      }
      await context.writer.changeRow('charge', { head: { attempts }, lease: 'released' })
    } catch {
      // Neither the count nor the failure could be written, so only the error itself is thrown.
    }
    throw error
  }
}
