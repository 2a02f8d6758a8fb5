import { linkAbort } from '@skein/base'
import { llm, type Message, type Tool, type Turn } from '@skein/ai'
import { hasUnnotedChildren } from '../children/child-list.ts'
import { CLIENT_TOOLS, openGovernor, toolsOf } from '../calls/gate.ts'
import type { ResolvedAgent, ResolvedSide } from '../definitions/resolved.ts'
import type { PromptToolConfig } from '../definitions/types.ts'
import type {
  Drain,
  DrainEnd,
  TimerHandle,
  Timers,
  Suspect,
  Trial,
  GatePlace,
} from '../dispatch/dispatcher.ts'
import type { KeptLease, LeaseKeeper, TrialGate } from '../recovery/lease.ts'
import { RuntimeError } from '../contract/error.ts'
import type { FailureCause, RuntimeEvent } from '../contract/event.ts'
import type { SessionGovernor } from '../governance/session-governors.ts'
import { createEnvReader, type EnvReader, envSet, threadSecrets } from '../thread/env.ts'
import type { Redactor } from '../secrets/vault.ts'
import {
  type Commit,
  type CommitResult,
  isStoreError,
  StoreError,
  type ThreadChange,
  type ThreadHead,
} from '../store/store.ts'
import { activate, bootChild } from '../actions/activate.ts'
import { runCalls } from '../calls/run.ts'
import { cutTurn, settleInDoubt } from '../actions/cut-turn.ts'
import { runEffect, settleEffect } from '../actions/effects.ts'
import { decideUndo } from '../actions/decide-undo.ts'
import { infer } from '../model/infer.ts'
import { askLogged } from '../model/ask.ts'
import {
  awaitAgent,
  beginSession,
  cascade,
  close,
  endFailing,
  expire,
  failStuck,
  failWithoutProgress,
  failureCause,
  missingHere,
  asTold,
  park,
  tellParent,
  waitsForAgent,
} from '../session/session.ts'
import { endStep } from '../actions/end-step.ts'
import { runStrategy } from '../actions/run-agent.ts'
import {
  type DrainContext,
  type Facade,
  type FacadeUse,
  isStop,
  type KernelEnvironment,
  type Write,
} from '../contract/context.ts'
import { liveParent, openFacade } from '../thread/changes.ts'
import {
  checkReads,
  freshUserValues,
  readsOf,
  userChanges,
  withUpdates,
  writtenKeys,
} from '../thread/values.ts'
import { findCall } from '../state/calls.ts'
import { catchUpFold, KernelFold } from '../state/fold.ts'
import { type KernelAction, next } from './next.ts'
import {
  asksPeople,
  type KernelState,
  openCalls,
  registryOf,
  waitingAfter,
} from '../state/kernel-state.ts'
import { DrainTrace } from '../telemetry/drain-trace.ts'
import { logEvents, rememberRedactor } from '../telemetry/logger.ts'

/** Keeps the state folded (computed) from a thread's log for the next work on it, so that no event is folded twice. */
export interface FoldMemory {
  /** Returns the folded state of this log, or an empty one. Until `put`, others may read it but not add events. */
  take(threadId: string, logId: number): KernelFold
  put(threadId: string, logId: number, fold: KernelFold): void
  /** Forgets a state that was taken, because the work for which it was taken failed. */
  drop(threadId: string, logId: number, fold: KernelFold): void
}

/** What all drains (stretches of work on a thread) of a process share. */
export interface DrainParts {
  readonly leases: LeaseKeeper
  readonly gate: TrialGate
  readonly timers: Timers
  readonly memory?: FoldMemory
}

/**
 * Returns the function that works on a thread (drains it): it claims the thread, computes its state from its log,
 * asks `next` for an action and performs it, until nothing is left to do. It ends without an error when another
 * drain has claimed the thread meanwhile, because the store then accepts no more commits of the earlier one.
 */
export function createDrain(environment: KernelEnvironment, parts: DrainParts): Drain {
  const { leases, gate, memory } = parts
  const breaks = new Breaks(environment)
  return async (threadId, signal) => {
    const place = gate.arrive()
    try {
      const lease = await leases.claim(threadId, signal)
      if (!lease) return undefined
      if ('heldBy' in lease) return { type: 'held', leftMs: lease.leftMs }
      const { logId } = lease.claim.head
      const fold = memory?.take(threadId, logId) ?? new KernelFold()
      let isKept = false
      const drain = new ThreadDrain(environment, { ...parts, lease, place, fold, breaks })
      let failure: unknown
      try {
        const end = await drain.run()
        // A commit that failed while the work was aborted leaves events in the folded state that are not in the log.
        isKept = drain.fold.ahead === 0
        if (isKept) memory?.put(threadId, logId, drain.fold)
        return end
      } catch (error) {
        // Once another process or drain (run of this work) has claimed the thread, any error here is only a
        // consequence of that, so it is not reported.
        if (drain.isFenced || isStoreError(error, 'FENCED')) return undefined
        failure = error
        rememberRedactor(error, (text) => drain.redactor()?.text(text) ?? text)
        if (signal.aborted || !isChargeable(error)) throw error
        // The lease was lost: the process that holds it now continues the thread.
        if (lease.signal.aborted) return undefined
        return await drain.charge(error)
      } finally {
        if (!isKept) memory?.drop(threadId, logId, fold)
        drain.trace?.close(failure)
        drain.clearTrialTimer()
        lease.end()
        // Giving the lease back shows that this process did not die, so no death is counted against the
        // thread. If the store cannot be reached, the lease expires.
        if (!drain.isReleased) await leases.release(threadId).catch(() => undefined)
      }
    } finally {
      place.leave()
    }
  }
}

function isAgentMissing(error: unknown): boolean {
  return error instanceof RuntimeError && error.code === 'AGENT_NOT_FOUND'
}

/**
 * Whether an error counts against its thread, which fails after several such errors. Failures of the
 * store are not the thread's fault, and a log of a later version is left to a program that can read it.
 */
function isChargeable(error: unknown): boolean {
  if (isStoreError(error)) return !error.code.startsWith('STORE_')
  return !(error instanceof RuntimeError && error.code === 'LOG_VERSION')
}

interface OwnParts extends Pick<DrainParts, 'timers'> {
  readonly lease: KeptLease
  readonly place: GatePlace
  readonly fold: KernelFold
  readonly breaks: Breaks
}

class ThreadDrain implements DrainContext {
  readonly #environment: KernelEnvironment
  /** The environment with the definitions of the previous version, which sessions that began with them still use. */
  #previous: KernelEnvironment | undefined
  readonly head: ThreadHead
  readonly epoch: number
  readonly signal: AbortSignal
  readonly trace: DrainTrace | undefined
  /** Whether another drain (run of this work) has claimed the thread; the store then rejects commits from here. */
  isFenced = false
  /** Whether the last commit has also given back the lease, the right to work on the thread. */
  isReleased = false
  #attempts: number
  #trial: Trial | undefined
  #trialTimer: TimerHandle | undefined
  readonly #place: GatePlace
  readonly #timers: Timers
  #isDue = false
  /** When it is time to look again whether subagents have stopped, for which a session that fails waits. */
  #looksAt: number | undefined
  /** The state folded from the log and from the writes in `#joined`, which are not in the log yet. */
  fold: KernelFold
  /** Writes that are held back to be written together with the next commit, merged into one commit. */
  #joined: Joined | undefined
  #isTakingBack = false
  /** Whether this work on the thread has ended, so that calls which still run can store nothing. */
  #isOver = false
  readonly #breaks: Breaks
  #governor: Promise<SessionGovernor> | undefined
  #openGovernor: SessionGovernor | undefined
  #last: Promise<void> = Promise.resolve()
  readonly #hidden = new Set<string>()
  #tools: { readonly key: readonly unknown[]; readonly tools: readonly Tool[] } | undefined
  #time = { ms: NaN, text: '' }
  /** The time of the last event of this drain (ISO 8601). */
  #lastAt = ''
  #redactor: { readonly key: string; readonly redactor: Redactor | undefined } | undefined

  constructor(environment: KernelEnvironment, { lease, place, fold, timers, breaks }: OwnParts) {
    this.#environment = environment
    this.head = lease.claim.head
    this.epoch = lease.claim.epoch
    this.signal = lease.signal
    this.#attempts = this.head.attempts
    this.#place = place
    this.#timers = timers
    this.fold = fold
    const { telemetry } = environment
    this.trace = telemetry && new DrainTrace(telemetry, this.head, () => this.state)
    this.#breaks = breaks
  }

  get state(): KernelState {
    return this.fold.state
  }

  /** The services of the runtime, with the definitions (current or previous) that the running session uses. */
  get environment(): KernelEnvironment {
    const { registry } = this.#environment
    if (!registry.previous || registryOf(registry, this.state) === registry)
      return this.#environment
    this.#previous ??= { ...this.#environment, registry: registry.previous }
    return this.#previous
  }

  get agent(): ResolvedAgent {
    return this.environment.registry.agent(this.state.agent)
  }

  /** Works until nothing is left to do. Writes held back for the next commit are committed even after an error. */
  async run(): Promise<DrainEnd | undefined> {
    try {
      const end = await this.#work()
      await this.#finish()
      return end
    } catch (error) {
      await this.#commitJoined().catch(() => undefined)
      const missing = isAgentMissing(error) ? missingHere(this.state, this.environment) : undefined
      if (!missing || this.isFenced || this.signal.aborted) throw error
      // The definitions were replaced during the work on the thread, and the new ones lack the thread's agent.
      await awaitAgent(this, missing)
      await this.#finish()
      return { type: 'agent_missing' }
    }
  }

  /**
   * Waits for the commits that are under way, and refuses later ones. Work that is aborted does not wait for its
   * calls, and one of them may be about to store its result. The next work on the thread uses the same folded
   * state, so nothing may be added to that state from here on.
   */
  async #finish(): Promise<void> {
    for (let last: Promise<void> | undefined; last !== this.#last;) {
      last = this.#last
      await last
      await this.#commitJoined()
    }
    this.#isOver = true
  }

  async #work(): Promise<DrainEnd | undefined> {
    await this.catchUp()
    const { clock, limits, spending } = this.environment
    await spending?.settleLost(this.head)
    if (this.#attempts >= limits.drainAttempts) {
      await failStuck(this, deathCause(this.state))
      return undefined
    }
    await this.#enter()
    let last: { readonly seq: number; readonly action: string } | undefined
    for (;;) {
      const pause = this.#breaks.due()
      if (pause) await pause
      const { epoch } = this
      const missing = missingHere(this.state, this.environment)
      const { registry } = this.environment
      const agent = missing ? undefined : registry.agents.get(this.state.agent)
      const options = { agent, epoch, now: clock.now(), limits, looksAt: this.#looksAt }
      const action = next(this.state, options)
      if (this.#mustLeave(action)) return undefined
      if (this.#joined && !JOINABLE.has(action.type)) {
        await this.#commitJoined()
        continue // the log may have got other events first
      }
      if (action.type === 'await_agent') {
        await awaitAgent(this, missing!) // `next` returns this action only without an agent
        return { type: 'agent_missing' }
      }
      if (action.type === 'park') {
        if (await this.#unlessMoved(() => park(this, action))) return undefined
        continue
      }
      // The actions `close` and `cascade` end the session and report to the parent by themselves.
      if (action.type !== 'close' && action.type !== 'cascade' && (await tellParent(this))) continue
      // `next` is pure: if an action changed nothing in the log, `next` would return it again and again.
      const current = { seq: this.state.seq, action: nameOf(action) }
      // This action may only look at other threads, and then the drain parks.
      if (action.type === 'end_failing') last = undefined
      if (last?.seq === current.seq && last.action === current.action) {
        if (await failWithoutProgress(this, current.action)) return undefined
        continue
      }
      last = current
      await this.#unlessMoved(() => this.#traced(action))
    }
  }

  /** Performs an action. It ends without effect if an earlier write that it relies on could not be committed. */
  async #unlessMoved<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof JoinedWriteError)) throw error
      return undefined
    }
  }

  /** Waits until the thread may work: after a crash, threads that may have caused it (suspects) work one at a time. */
  async #enter(): Promise<void> {
    const { lease } = this.head
    const { deaths = 0, survived = 0 } = lease ?? {}
    const open = openWork(this.state)
    const suspect = deaths > 0 ? { open, deaths, survived, charges: this.#attempts } : undefined
    const trial = await this.#place.enter(suspect, this.signal)
    this.#trial = trial
    if (trial) {
      // `on_trial` is written before the thread works: if the process dies, the next one knows which thread worked.
      if (trial.isCharged) await this.#commitLease('on_trial')
      this.#trialTimer = this.#timers.set(trial.ms, () => void this.#survive(trial))
    }
    if (suspect) await this.catchUp() // others may have written while the drain waited
  }

  /** Called when a thread suspected of crashes has worked alone for long enough: others may work beside it now. */
  async #survive(trial: Trial): Promise<void> {
    try {
      if (trial.isCharged) await this.#commitLease('survived')
    } catch {
      // Another process has claimed the thread, or the store failed: the next commit from here throws too.
    }
    this.#endTrial()
  }

  #endTrial(): void {
    this.clearTrialTimer()
    this.#trial?.end()
    this.#trial = undefined
  }

  clearTrialTimer(): void {
    if (this.#trialTimer !== undefined) this.#timers.clear(this.#trialTimer)
    this.#trialTimer = undefined
  }

  async #commitLease(lease: 'on_trial' | 'survived'): Promise<void> {
    await this.#write({ point: lease, threads: [{ id: this.head.id, fence: this.epoch, lease }] })
  }

  /**
   * Counts an error of the work against its thread, and rethrows the error so that the work is tried
   * again later. After `drainAttempts` such errors without progress, the thread fails instead.
   */
  async charge(error: unknown): Promise<DrainEnd> {
    const { id } = this.head
    const attempts = this.#attempts + 1
    try {
      if (attempts >= this.environment.limits.drainAttempts) {
        this.#attempts = attempts
        await this.catchUp()
        await failStuck(this, failureCause(error))
        return { type: 'failed', error }
      }
      const change = { id, fence: this.epoch, head: { attempts }, lease: 'released' } as const
      await this.#write({ point: 'charge', threads: [change] })
      this.isReleased = true
    } catch {
      // Neither the count nor the failure could be written, so only the error itself is thrown.
    }
    throw error
  }

  /**
   * Whether the work has to end without performing the action. After a stop or a termination, only actions that end
   * something are still performed, and after a shutdown none, because every other action would be aborted at once.
   */
  #mustLeave({ type }: KernelAction): boolean {
    if (!this.signal.aborted) return false
    const isClosing = type === 'close' || type === 'park' || type === 'cascade'
    return !(isClosing && isStop(this.signal.reason))
  }

  #traced(action: Exclude<KernelAction, { type: 'park' | 'await_agent' }>): Promise<void> {
    return this.trace?.perform(() => this.#perform(action)) ?? this.#perform(action)
  }

  #perform(action: Exclude<KernelAction, { type: 'park' | 'await_agent' }>): Promise<void> {
    switch (action.type) {
      case 'cascade':
        return cascade(this, action.references)
      case 'close':
        return close(this, action.outcome)
      case 'end_failing':
        return this.#endFailing()
      case 'decide_undo':
        return decideUndo(this, action.interruptId)
      case 'settle_in_doubt':
        return settleInDoubt(this, action.calls)
      case 'expire':
        return expire(this, action.interruptId)
      case 'boot_child':
        return bootChild(this, action.requestId)
      case 'run_effect':
        return runEffect(this, action.effectId)
      case 'settle_effect':
        return settleEffect(this, action.effectId)
      case 'activate':
        return activate(this)
      case 'begin_session':
        return beginSession(this, action.side)
      case 'cut_turn':
        return cutTurn(this, action.side, action.drops)
      case 'infer':
        return infer(this, action.side)
      case 'run_agent':
        return runStrategy(this, action.side)
      case 'run_calls':
        return runCalls(this, action.side, action.entry)
      case 'end_step':
        return endStep(this, action.side, action.decision)
    }
  }

  async #endFailing(): Promise<void> {
    if (!(await endFailing(this))) this.#looksAt = this.environment.clock.now() + LOOK_AGAIN_MS
  }

  nextAction(): KernelAction {
    const { agent, epoch, environment } = this
    const { clock, limits } = environment
    return next(this.state, { agent, epoch, now: clock.now(), limits })
  }

  at(): string {
    const ms = this.environment.clock.now()
    // Events that are written together mostly have the same time, so the text of the last time is kept.
    if (ms !== this.#time.ms) this.#time = { ms, text: new Date(ms).toISOString() }
    return this.#time.text
  }

  /**
   * Writes a commit after all earlier commits have finished, so that the records of the governor (which
   * applies the policies) are stored in the order in which it made them.
   */
  async commit(point: string, write: Write): Promise<void> {
    try {
      if (this.#isOver)
        throw new StoreError(`The drain of thread ${this.head.id} has ended.`, {
          code: 'FENCED',
          hint: 'The next drain decides about what this one has not stored.',
        })
      await this.#inTurn(() => this.#commit(point, write))
    } catch (error) {
      if (isLost(error)) write.onLost?.()
      throw error
    }
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work)
    this.#last = done.catch(() => undefined)
    return done
  }

  async #commit(point: string, write: Write): Promise<void> {
    const governance = write.governance ?? this.#openGovernor?.takeWrites()
    try {
      return await this.#append(point, { ...write, governance })
    } catch (error) {
      const rest = await this.#withoutParent(write, error)
      if (rest) return await this.#append(point, { ...rest, governance })
      // The governor (which applies the policies) has made decisions that are not in the log. So it is dropped
      // here, and opened again from the log when it is needed.
      this.dropGovernor()
      throw error
    }
  }

  /**
   * Returns the write without the change of the parent if the commit was refused because the parent was
   * terminated, erased or removed; otherwise undefined.
   */
  async #withoutParent(write: Write, error: unknown): Promise<Write | undefined> {
    const isOver = isStoreError(error, 'THREAD_TERMINATED')
    if (!isOver && !isStoreError(error, 'THREAD_NOT_FOUND')) return undefined
    const { others = [], events, undelivered = events } = write
    const parentId = this.state.parent?.threadId
    const rest = others.filter(({ id, mustBeLive }) => id !== parentId || !mustBeLive)
    if (rest.length === others.length || (await liveParent(this)) !== undefined) return undefined
    return { ...write, others: rest, events: undelivered }
  }

  async #append(point: string, given: Write): Promise<void> {
    const { governance } = given
    const checked = this.#checked(withoutAnswered(this.state, given))
    const { write } = checked
    // A write that asks a person also changes the count of open questions, so it must know of every answer in the log.
    const isGuarded = checked.isGuarded || asksPeople(write.events ?? [])
    const mayJoin = write.joinsNext && !isGuarded && !write.values?.user
    if (mayJoin && (await this.#join(point, { ...write, governance }))) return
    const alone = { ...write, governance, joinsNext: undefined }
    const own = this.#planned(point, alone, isGuarded)
    const joined = this.#joined
    const planned = joined ? merged(joined, own) : own
    const isRetried = (isGuarded || setsLifecycle(write)) && !write.expectsNoMail && !joined
    const commitNow = (): Promise<CommitResult | undefined> =>
      this.#write(planned.commit, isRetried)
    let result: CommitResult | undefined
    try {
      result = await (this.trace?.commit(planned.commit, commitNow) ?? commitNow())
    } catch (error) {
      if (joined) await this.#takeBack(joined, error)
      if ((joined || needsLife(write)) && isStoreError(error, 'THREAD_TERMINATED')) {
        if (!joined) await this.catchUp()
        if (!this.state.terminated) throw error
        if (point === '') return
        const ends = needsLife(write) ? endsOnly(given) : given
        if (!ends) throw new JoinedWriteError()
        return this.#append(point, ends)
      }
      const { values } = write
      if (
        values?.user &&
        (isStoreError(error, 'VALUE_MOVED') || isStoreError(error, 'VALUE_LIMIT'))
      )
        return this.#append(point, await this.#afterMove(given, error))
      // Committed alone, the write is right whatever others have appended, unless it demands an unchanged log.
      if (!joined || !isStoreError(error, 'LOG_MOVED') || write.expectsNoMail) throw error
      return point === '' ? undefined : this.#append(point, given)
    }
    if (!result) {
      await this.catchUp()
      return this.#append(point, given)
    }
    this.#joined = undefined
    this.fold.ahead = 0
    this.#isDue ||= planned.marksDue
    if (planned.isProgress) {
      this.#attempts = 0
      this.#endTrial()
    }
    if (write.releases) this.isReleased = true
    this.#report(own.events)
    const last = result.seqs.get(this.head.id) ?? this.state.seq
    if (last !== this.state.seq + own.events.length) return this.catchUp()
    for (const event of own.events) this.fold.push({ seq: this.state.seq + 1, event })
  }

  /** Tells telemetry and the logger about events, before the events change the folded state. */
  #report(events: readonly RuntimeEvent[]): void {
    if (this.#isTakingBack) return // they were told when the events joined
    this.trace?.committed(events)
    if (this.environment.logger) logEvents(this.environment.logger, this, events)
  }

  /** Builds the commit (one transaction of the store) for a write to the thread. */
  #planned(point: string, write: Write, isGuarded: boolean): Joined {
    const { clock } = this.environment
    const { governance, isProgress = false } = write
    const back = this.#agentIsBack(point)
    const own = [...back, ...(write.events ?? []), ...(governance?.events ?? [])]
    const plain = {
      events: this.#safeEvents(this.head.id, own).map(asStored),
      others: (write.others ?? []).map(({ append, ...change }) => ({
        ...this.#redacted(change),
        append: append && this.#safeEvents(change.id, append),
      })),
    }
    const stamped = this.trace?.stamp(plain) ?? plain
    const { others } = stamped
    const events = this.#inOrder(stamped.events)
    let { wake } = write
    // While a thread is worked on, it is marked as due in the store, so that after a crash the next
    // start of the runtime finds the thread even if nothing else asks for work on it.
    const isDue = this.#isDue || this.#joined?.marksDue === true
    const marksDue = !wake && !isDue && (this.head.wakeAt ?? Infinity) > clock.now()
    if (marksDue) wake = { by: clock.now() }
    // A lifecycle is set only by a write that knows whether the thread was terminated.
    const isFixed = write.expectsNoMail || write.joinsNext || isGuarded || setsLifecycle(write)
    const change: ThreadChange = {
      id: this.head.id,
      fence: this.epoch,
      append: events,
      head: {
        lifecycle: back.length > 0 ? 'running' : undefined,
        // Open questions are counted at once: a person can answer while other calls of the message still run.
        waiting: asksPeople(events) ? waitingAfter(this.state, events, clock.now()) : undefined,
        ...write.head,
        ...(this.state.terminated && setsLifecycle(write) && { lifecycle: 'terminated' }),
        attempts: isProgress ? 0 : write.head?.attempts,
      },
      lease: write.releases ? 'released' : isProgress ? 'cleared' : undefined,
      wake,
      expectSeq: isFixed ? this.state.seq : undefined,
      mustBeLive: needsLife(write) || undefined,
    }
    const commit: Commit = {
      point,
      isLazy: write.isLazy,
      threads: [change, ...others],
      blobs: [...(write.blobs ?? []), ...(governance?.blobs ?? [])],
      audit: governance?.audit,
      spent: governance?.spent,
      userValues: write.values && this.#redacted(userChanges(write.values, this.at())),
    }
    return { commit, events, marksDue, isProgress, redo: [], lost: [] }
  }

  /**
   * Returns the events with times that never go back. Events that are written together were made at different moments:
   * the time of an answer is that of its last part, and its `model_answered` may have been made later.
   */
  #inOrder(events: readonly RuntimeEvent[]): readonly RuntimeEvent[] {
    let last = this.#lastAt
    const ordered = events.map((event) => {
      if (event.at < last) return { ...event, at: last }
      last = event.at
      return event
    })
    this.#lastAt = last
    return ordered
  }

  /**
   * Holds a write back until the next commit, but adds its events to the state now. Returns false if it has to be
   * committed by itself, because it changes other threads or has records of the governor that cannot be made again.
   */
  async #join(point: string, write: Write): Promise<boolean> {
    const { joinsNext, expectsNoMail, others = [], governance } = write
    const hasRecords = governance && governance.events.length + governance.audit.length > 0
    if (!joinsNext || others.length > 0 || (hasRecords && joinsNext !== true)) return false
    if (!this.#joined) {
      // Events that others appended while a model or a tool worked are read now. The next commit
      // demands an unchanged log, so it is refused only if more events arrive before it.
      const { seq } = this.state
      await this.catchUp()
      if (expectsNoMail && this.state.seq !== seq)
        throw new StoreError(`Thread ${this.head.id} has mail.`, { code: 'LOG_MOVED' })
    }
    const own = this.#planned(point, write, false)
    const redo = (): Promise<boolean> => {
      // No records are taken from the governor: those made after this write belong to the later, refused write.
      if (joinsNext !== true) return joinsNext((name, one) => this.#append(name, one))
      return this.#append(point, { ...write, joinsNext: undefined }).then(() => true)
    }
    const { redo: earlier = [], lost = [] } = this.#joined ?? {}
    const all = this.#joined ? merged(this.#joined, own) : own
    this.#joined = { ...all, redo: [...earlier, redo], lost: [...lost, write.onLost] }
    this.#report(own.events)
    for (const event of own.events) this.fold.push({ seq: this.state.seq + 1, event })
    this.fold.ahead += own.events.length
    return true
  }

  /** Commits the writes that were held back for the next commit, because no other commit follows now. */
  async #commitJoined(): Promise<void> {
    if (!this.#joined) return
    await this.#unlessMoved(() =>
      this.#inTurn(async () => {
        if (this.#joined) await this.#append('', {})
      }),
    )
  }

  /**
   * After a refused commit, reads the log again, because the folded state has events that the log
   * lacks, and commits each held-back write by itself. Throws `JoinedWriteError` if one of these writes
   * is no longer right: whatever was decided after it has to be decided again.
   */
  async #takeBack({ redo, lost }: Joined, error: unknown): Promise<void> {
    this.#joined = undefined
    const left = [...lost]
    this.#isTakingBack = true
    try {
      // After such an error the drain ends.
      if (this.isFenced || isLost(error)) return
      await this.catchUp()
      for (const [place, again] of redo.entries()) {
        if (!(await again())) throw new JoinedWriteError()
        left[place] = undefined
      }
    } finally {
      this.#isTakingBack = false
      for (const onLost of left) onLost?.()
    }
  }

  /** Returns the event which says that the thread works again after it has waited for its agent to be defined. */
  #agentIsBack(point: string): RuntimeEvent[] {
    if (point === 'await_agent' || !waitsForAgent(this.state)) return []
    if (missingHere(this.state, this.environment)) return []
    return [{ type: 'status_changed', at: this.at(), status: 'running', ...asTold(this.state) }]
  }

  /**
   * Compares the values that the write relies on with the log as far as it was read. Returns the write, or its
   * `onConflict` replacement, and whether the commit must be refused if somebody writes to the log in between.
   */
  #checked(given: Write): { readonly write: Write; readonly isGuarded: boolean } {
    const { events = [], values, onConflict } = given
    if (!values) return { write: given, isGuarded: false }
    const keys = writtenKeys(events)
    const reads = readsOf(values, keys)
    try {
      checkReads(this.state, reads, keys)
      const write = { ...given, events: withUpdates(events, values, this.state.values) }
      return { write, isGuarded: reads.length > 0 || values.updates.size > 0 }
    } catch (error) {
      if (!onConflict) {
        // The governor's records that were taken for this write are lost with it, so the governor is reopened.
        if (given.governance) this.dropGovernor()
        throw error
      }
      return { write: onConflict(error), isGuarded: false }
    }
  }

  /**
   * Called when the store refused a write because a value of the user has changed (`VALUE_MOVED`) or the user has too
   * many values. Returns the write with the values as they are now or, after a conflict, its `onConflict` replacement.
   */
  async #afterMove(given: Write, error: StoreError): Promise<Write> {
    const { values, onConflict, governance } = given
    try {
      if (error.code === 'VALUE_LIMIT' || !values?.user) throw error
      const user = await freshUserValues(this.environment.store, values.user)
      return { ...given, values: { ...values, user } }
    } catch (conflict) {
      if (isStoreError(conflict) && conflict.code !== 'VALUE_LIMIT') throw conflict
      if (onConflict) return { ...onConflict(conflict), governance }
      if (governance) this.dropGovernor()
      throw conflict
    }
  }

  /** Writes a commit. Returns undefined if the log was changed by others and the caller tries again (`mayMove`). */
  async #write(commit: Commit, mayMove = false): Promise<CommitResult | undefined> {
    try {
      return await this.environment.commit(commit)
    } catch (error) {
      if (mayMove && isStoreError(error, 'LOG_MOVED')) return undefined
      this.isFenced ||= isStoreError(error, 'FENCED')
      throw error
    }
  }

  /**
   * Removes secrets from the events of a thread. A variable that contains a secret is encrypted instead, because
   * tools need its value.
   */
  #safeEvents(threadId: string, events: readonly RuntimeEvent[]): readonly RuntimeEvent[] {
    const safe = this.#redacted(events)
    if (safe === events) return events
    const { vault } = this.environment
    return events.map((event, place) =>
      event.type === 'env_set' && safe[place] !== event
        ? envSet({ ...event, valueType: 'secret', threadId, vault })
        : safe[place]!,
    )
  }

  #redacted<T>(value: T): T {
    return this.redactor()?.json(value) ?? value
  }

  /**
   * Adds the events that others have appended to the log to the state. A state with events that the store refused is
   * computed anew. Does nothing while a write is held back: the next commit finds out whether the log has changed.
   */
  async catchUp(): Promise<void> {
    if (this.#joined) return
    const fold = this.fold.ahead > 0 ? new KernelFold() : this.fold
    const { id: threadId, logId } = this.head
    await catchUpFold(fold, this.environment.store, { threadId, logId })
    this.fold = fold
  }

  env(side: ResolvedSide, tool?: PromptToolConfig, agent = this.agent): EnvReader {
    const { instanceEnv, vault } = this.environment
    return createEnvReader({
      kernel: this.state,
      agent,
      side: side.side,
      instanceEnv,
      vault,
      threadId: this.head.id,
      toolEnv: tool?.env,
    })
  }

  hide(secrets: readonly string[]): void {
    for (const secret of secrets) this.#hidden.add(secret)
  }

  redactor(): Redactor | undefined {
    const key = `${this.state.envSeq} ${this.#hidden.size} ${this.state.agent}`
    if (this.#redactor?.key === key) return this.#redactor.redactor
    const secrets = new Set([...this.#hidden, ...threadSecrets(this.environment, this.state)])
    const redactor = secrets.size > 0 ? this.environment.vault.redactor(secrets) : undefined
    this.#redactor = { key, redactor }
    return redactor
  }

  facade(side: ResolvedSide, use?: FacadeUse): Facade {
    return openFacade(this, side, use)
  }

  tools(side: ResolvedSide): readonly Tool[] {
    const { envSeq, values } = this.state
    // The tool that lists children is there only while there are many.
    const key = [side, envSeq, values.get(CLIENT_TOOLS), hasUnnotedChildren(this.state)]
    if (!this.#tools || this.#tools.key.some((part, place) => part !== key[place]))
      this.#tools = { key, tools: toolsOf(this, side) }
    return this.#tools.tools
  }

  async generateAside(
    side: ResolvedSide,
    input: readonly Message[],
    options: { readonly system?: string } = {},
  ): Promise<Turn> {
    const { clock, ids, limits, spending } = this.environment
    const first = side.prompt.models[0]!
    const { config, providerOptions: params } = first.definition ?? {}
    const middleware = [
      this.trace?.middleware() ?? [],
      spending?.middleware(this.head, side, first) ?? [],
    ].flat()
    const controller = new AbortController()
    const { signal } = controller
    const unlink = linkAbort([this.signal], controller)
    const message = `The model was not done after ${limits.modelMs} ms.`
    const late = (): void => controller.abort(new DOMException(message, 'TimeoutError'))
    const timer = limits.modelMs === Infinity ? undefined : this.#timers.set(limits.modelMs, late)
    const asked = { model: first.model, signal, clock, ids, config, params, middleware, ...options }
    try {
      return await llm(asked).generate(input)
    } finally {
      if (timer !== undefined) this.#timers.clear(timer)
      unlink()
    }
  }

  askSide(...asked: Parameters<DrainContext['askSide']>): ReturnType<DrainContext['askSide']> {
    return askLogged(this, ...asked)
  }

  runUserCode<T>({ id, kind, name }: Parameters<DrainContext['runUserCode']>[0], work: () => T): T {
    const { watchdog } = this.environment
    const code = { kind, name, threadId: this.head.id }
    const watched = watchdog ? () => watchdog.run(code, work) : work
    return this.trace ? this.trace.run(id, watched) : watched()
  }

  governor(): Promise<SessionGovernor> {
    this.#governor ??= openGovernor(this).then((governor) => (this.#openGovernor = governor))
    return this.#governor
  }

  dropGovernor(): void {
    this.#governor = undefined
    this.#openGovernor = undefined
  }
}

/**
 * How long a drain waits before it looks again whether subagents have stopped. A subagent that reports to its parent
 * wakes the parent earlier; one that is further down does not.
 */
const LOOK_AGAIN_MS = 250

/**
 * The actions whose first step is a commit, so that an earlier write can be held back and written with it
 * (see `Write.joinsNext`). `run_calls` is one of them, because calls commit their start before they run.
 */
const JOINABLE: ReadonlySet<KernelAction['type']> = new Set([
  'end_step',
  'park',
  'run_calls',
] as const)

/**
 * Thrown when a held-back write was lost on which a later write relies, or when the thread was terminated meanwhile:
 * `next` then decides again.
 */
class JoinedWriteError extends Error {}

/** A commit that was not written yet. */
interface Joined {
  readonly commit: Commit
  /** The events of the drain's own thread. */
  readonly events: readonly RuntimeEvent[]
  readonly marksDue: boolean
  readonly isProgress: boolean
  /** Commits the held-back writes one by one, after the store refused them together. */
  readonly redo: readonly (() => Promise<boolean>)[]
  /** What to call for each held-back write that is lost (`Write.onLost`). */
  readonly lost: readonly (Write['onLost'] | undefined)[]
}

/** Merges two commits for a thread into one. The earlier one changes no other thread. */
function merged(earlier: Joined, later: Joined): Joined {
  const [before] = earlier.commit.threads
  const [after, ...others] = later.commit.threads
  const head = Object.entries(after!.head ?? {}).filter(([, value]) => value !== undefined)
  const change: ThreadChange = {
    ...after!,
    expectSeq: before!.expectSeq,
    append: [...earlier.events, ...later.events],
    head: { ...before!.head, ...Object.fromEntries(head) },
    mustBeLive: after!.mustBeLive ?? before!.mustBeLive,
    lease: after!.lease ?? before!.lease,
    wake: after!.wake ?? before!.wake,
  }
  const { blobs = [], audit = [], spent = [], point } = earlier.commit
  const commit: Commit = {
    point: later.commit.point === '' ? point : `${point}+${later.commit.point}`,
    isLazy: earlier.commit.isLazy && later.commit.isLazy,
    threads: [change, ...others],
    blobs: [...blobs, ...(later.commit.blobs ?? [])],
    audit: [...audit, ...(later.commit.audit ?? [])],
    spent: [...spent, ...(later.commit.spent ?? [])],
    userValues: later.commit.userValues, // a write with values of users never waits for the next commit
  }
  return {
    commit,
    events: change.append!,
    marksDue: earlier.marksDue || later.marksDue,
    isProgress: earlier.isProgress || later.isProgress,
    redo: earlier.redo,
    lost: earlier.lost,
  }
}

/** Whether a write begins something. A thread that was terminated refuses it: it only records how its work ends. */
function needsLife({ events = [], others = [] }: Write): boolean {
  return events.some(({ type }) => BEGINNINGS.has(type)) || others.some(({ create }) => create)
}

const BEGINNINGS: ReadonlySet<RuntimeEvent['type']> = new Set([
  'message_added',
  'message_queued',
  'session_start',
  'turn_start',
  'step_start',
  'tool_execution_start',
  'effect_started',
] as const)

/** Returns the part of a write that records the end of calls and effects; undefined if there is none. */
function endsOnly({ events = [], onLost }: Write): Write | undefined {
  const kept = events.filter(({ type }) => ENDS.has(type))
  return kept.length === 0 ? undefined : { events: kept, onLost, isProgress: true }
}

const ENDS: ReadonlySet<RuntimeEvent['type']> = new Set([
  'tool_execution_end',
  'effect_ended',
] as const)

function setsLifecycle({ head }: Write): boolean {
  return head?.lifecycle !== undefined
}

/** Whether an error means that a write cannot be stored by this drain, which then ends. */
function isLost(error: unknown): boolean {
  return !isStoreError(error) || error.code === 'FENCED' || error.code.startsWith('STORE_')
}

/**
 * Leaves out questions whether a call took effect that has reported its result meanwhile: a late result is appended
 * without the drain, perhaps just before the question.
 */
function withoutAnswered(state: KernelState, write: Write): Write {
  const { events = [], head } = write
  const kept = events.filter(
    (event) =>
      event.type !== 'interrupt_opened' ||
      event.interrupt.kind !== 'in_doubt' ||
      !isAnsweredLate(state, event),
  )
  const gone = events.length - kept.length
  if (gone === 0) return write
  const waiting = head?.waiting === undefined ? undefined : Math.max(head.waiting - gone, 0)
  return { ...write, events: kept, head: { ...head, waiting } }
}

function isAnsweredLate(
  state: KernelState,
  { effectId, interrupt: { toolCallId } }: Extract<RuntimeEvent, { type: 'interrupt_opened' }>,
): boolean {
  const subject =
    effectId === undefined ? findCall(state, toolCallId)?.call : state.effects.get(effectId)
  return subject?.late !== undefined
}

/** How long, and for how many actions, work on threads may go on before timers and sockets get their turn. */
const MAX_BUSY_MS = 10
const MAX_BUSY_ACTIONS = 100

/**
 * Makes the work on threads pause for timers, sockets and other threads from time to time. With a store in
 * memory and a model that answers at once, that work runs in microtasks only, and no timer would ever fire.
 */
class Breaks {
  readonly #clock: KernelEnvironment['clock']
  /** The actions since the event loop last turned: time of the first, their number, a promise for the next turn. */
  #busy: { readonly since: number; actions: number; readonly turn: Promise<void> } | undefined

  constructor({ clock }: KernelEnvironment) {
    this.#clock = clock
  }

  /** Called before each action. Returns a promise if it is time for a pause; the caller waits for it. */
  due(): Promise<void> | undefined {
    const now = this.#clock.now()
    this.#busy ??= { since: now, actions: 0, turn: this.#nextTurn() }
    const { since, turn } = this.#busy
    const isLong = Math.abs(now - since) >= MAX_BUSY_MS || ++this.#busy.actions > MAX_BUSY_ACTIONS
    return isLong ? turn : undefined
  }

  #nextTurn(): Promise<void> {
    return new Promise((resolve) => {
      setImmediate(() => {
        this.#busy = undefined
        resolve()
      })
    })
  }
}

/** Returns a text that names an action and what it works on, to compare and to report actions. */
function nameOf(action: Exclude<KernelAction, { type: 'park' | 'await_agent' }>): string {
  switch (action.type) {
    case 'cascade':
      return `${action.type} ${action.references.join(' ')}`
    case 'close':
      return `${action.type} ${action.outcome}`
    case 'settle_in_doubt':
      return `${action.type} ${action.calls.map(({ call }) => call.toolCallId).join(' ')}`
    case 'expire':
      return `${action.type} ${action.interruptId}`
    case 'boot_child':
      return `${action.type} ${action.requestId}`
    case 'run_effect':
    case 'settle_effect':
      return `${action.type} ${action.effectId}`
    case 'activate':
    case 'end_failing':
      return action.type
    case 'decide_undo':
      return `${action.type} ${action.interruptId}`
    case 'begin_session':
    case 'cut_turn':
      return `${action.type} ${action.side}`
    case 'run_calls':
      return `${action.type} ${action.entry.message.id}`
    case 'infer':
    case 'run_agent':
      return `${action.type} ${action.side.side}`
    case 'end_step':
      return `${action.type} ${action.side.side} ${action.decision.type}`
  }
}

/** Removes fields that are undefined, as a store does, so that the state is computed from the same event as later. */
function asStored<T extends object>(event: T): T {
  // Every event of every turn comes here, so no lists of its members are made.
  for (const name in event) if (event[name] === undefined) return withoutUndefined(event)
  return event
}

function withoutUndefined<T extends object>(event: T): T {
  const stored: Partial<T> = {}
  for (const name in event) if (event[name] !== undefined) stored[name] = event[name]
  return stored as T // only undefined members are left out
}

/** Returns what a thread was doing when its log ended: a call or scheduled work, an inference, or nothing. */
function openWork(state: KernelState): Suspect['open'] {
  const { call, effect, step } = workOf(state)
  return call || effect ? 'call' : step ? 'inference' : 'nothing'
}

/** Returns the cause of failure for a thread that was working each time a process died. */
function deathCause(state: KernelState): FailureCause {
  const { call, effect, step } = workOf(state)
  const what = call
    ? `the tool ${call.call.toolName} ran`
    : effect
      ? `the effect ${effect.scheduled.name} ran`
      : step
        ? 'the thread waited for its model'
        : 'the thread was worked on'
  return {
    code: 'PROCESS_DIED',
    message: `The process died while ${what}.`,
    hint: 'Look for the end of the process in its output or in the system log: memory, a signal, process.exit.',
  }
}

function workOf(state: KernelState) {
  const step = state.session?.turn?.step
  return {
    call: openCalls(state).find(({ startedEpoch }) => startedEpoch !== undefined),
    effect: [...state.effects.values()].find(({ runningEpoch }) => runningEpoch !== undefined),
    step: step?.epoch !== undefined && step.entry === undefined ? step : undefined,
  }
}
