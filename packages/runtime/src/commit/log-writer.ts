import type { Write } from '../context/write.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { GovernanceWrites } from '../governance/session-governor.ts'
import { catchUpFold, KernelFold } from '../state/fold.ts'
import { resultUnlessMoved } from './log-moved.ts'
import { logEvents } from '../telemetry/logger.ts'
import { liveParent } from '../thread/changes.ts'
import { checkReads, readsOf, withUpdates, writtenKeys } from '../thread/value-reads.ts'
import { freshUserValues } from '../thread/user-values.ts'
import {
  HeldWriteLostError,
  type HeldWrites,
  holdWrite,
  mergePlanned,
  type PlannedCommit,
  unlessHeldWriteLost,
} from './held-writes.ts'
import {
  endsOnly,
  needsLife,
  type PlannedThread,
  setsLifecycle,
  withoutAnswered,
  WritePlanner,
} from './plan-write.ts'
import type { KernelState } from '../state/kernel-state.ts'
import { asksPeople } from '../state/questions.ts'
import type { Commit, CommitResult, ThreadChange } from '../store/commit.ts'
import { StoreError, isStoreError } from '../store/store-error.ts'

/** What a writer needs of the thread that it writes. */
export interface WrittenThread extends PlannedThread {
  /** Takes what the open governor wants stored with the next commit. */
  takeGovernance(): GovernanceWrites | undefined
  /** Called when decisions of the governor were not stored: it has to be opened again from the log. */
  dropGovernor(): void
  /** Called when a commit that records progress was stored. */
  onProgress(): void
}

/**
 * Writes the commits of one drain to its thread, one after the other, and keeps the folded state in step with the log.
 * Decides what happens when the store refuses a commit, and which writes are held until the next one.
 */
export class LogWriter {
  readonly #thread: WrittenThread
  readonly #planner: WritePlanner
  /** Whether another drain has claimed the thread; the store then rejects commits from here. */
  isFenced = false
  /** Whether the last commit has also given back the lease, the right to work on the thread. */
  isReleased = false
  /** The state folded from the log and from the held writes, which are not in the log yet. */
  fold: KernelFold
  #held: HeldWrites | undefined
  #isTakingBack = false
  /** Whether the store knows that the thread is due. */
  #isDue = false
  /** Whether this work on the thread has ended, so that calls which still run can store nothing. */
  #isOver = false
  #last: Promise<void> = Promise.resolve()
  /** How many commits are under way. */
  #underWay = 0

  constructor(thread: WrittenThread, fold: KernelFold) {
    this.#thread = thread
    this.#planner = new WritePlanner(thread)
    this.fold = fold
  }

  get state(): KernelState {
    return this.fold.state
  }

  /** Whether writes wait for the next commit. */
  get holdsWrites(): boolean {
    return this.#held !== undefined
  }

  /**
   * Writes a commit after all earlier commits have finished, so that the records of the governor are stored in the
   * order in which it made them.
   */
  async commit(point: string, write: Write): Promise<void> {
    try {
      if (this.#isOver)
        throw new StoreError(`The drain of thread ${this.#thread.head.id} has ended.`, {
          code: 'FENCED',
          hint: 'The next drain decides about what this one has not stored.',
        })
      // A store that plays a thread back decides in which order the commits of calls that run in parallel are stored.
      if (this.#thread.environment.store.rewritesEvents) await this.#commit(point, write)
      else await this.#inTurn(() => this.#commit(point, write))
    } catch (error) {
      if (isLost(error)) write.onLost?.()
      throw error
    }
  }

  /** Changes the thread's row alone, without waiting for earlier commits. */
  async changeRow(point: string, change: Pick<ThreadChange, 'head' | 'lease'>): Promise<void> {
    const { head, epoch } = this.#thread
    await this.#store({ point, threads: [{ id: head.id, fence: epoch, ...change }] })
    if (change.lease === 'released') this.isReleased = true
  }

  /**
   * Adds the events that others have appended to the log to the state. A state with events that the store refused is
   * computed anew. Does nothing while a write is held: the next commit finds out whether the log has changed.
   */
  async catchUp(): Promise<void> {
    if (this.#held) return
    const fold = this.fold.ahead > 0 ? new KernelFold() : this.fold
    const { environment, head } = this.#thread
    await catchUpFold(fold, environment.store, { threadId: head.id, logId: head.logId })
    this.fold = fold
  }

  /** Commits the held writes by themselves, because no other commit follows now. */
  async commitHeld(): Promise<void> {
    if (!this.#held) return
    await unlessHeldWriteLost(() =>
      this.#inTurn(async () => {
        if (this.#held) await this.#append('', {})
      }),
    )
  }

  /**
   * Waits for the commits that are under way, and refuses later ones. Work that is aborted does not wait for its
   * calls, and one of them may be about to store its result. The next work on the thread uses the same folded
   * state, so nothing may be added to that state from here on.
   */
  async finish(): Promise<void> {
    for (let last: Promise<void> | undefined; last !== this.#last;) {
      last = this.#last
      await last
      await this.commitHeld()
    }
    this.#isOver = true
  }

  /**
   * Waits for the commits that are under way. An aborted action does not wait for its own, so what is decided next
   * would otherwise not know of them.
   */
  async awaitCommits(): Promise<void> {
    while (this.#underWay > 0) await this.#last
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    this.#underWay++
    const done = this.#last.then(work)
    this.#last = done
      .catch(() => undefined)
      .then(() => {
        this.#underWay--
      })
    return done
  }

  async #commit(point: string, write: Write): Promise<void> {
    const governance = write.governance ?? this.#thread.takeGovernance()
    try {
      return await this.#append(point, { ...write, governance })
    } catch (error) {
      const rest = await this.#withoutParent(write, error)
      if (rest) return await this.#append(point, { ...rest, governance })
      // The governor has made decisions that are not in the log. So it is dropped
      // here, and opened again from the log when it is needed.
      this.#thread.dropGovernor()
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
    const isGone = rest.length < others.length && (await liveParent(this.#thread)) === undefined
    return isGone ? { ...write, others: rest, events: undelivered } : undefined
  }

  /** Plans a write, holds it or commits it together with the held ones, and adds its events to the state. */
  async #append(point: string, given: Write): Promise<void> {
    const { governance } = given
    const check = this.#checked(withoutAnswered(this.state, given))
    const { write } = check
    // A write that asks a person also changes the count of open questions, so it must know of every answer in the log.
    const isGuarded = check.isGuarded || asksPeople(write.events ?? [])

    // Hold the write, if it may wait for the next commit.
    const { rewritesEvents } = this.#thread.environment.store
    const mayWait = write.joinsNext && !isGuarded && !write.values?.user && !rewritesEvents
    if (mayWait && (await this.#hold(point, { ...write, governance }))) return

    // Commit it, together with the held writes.
    const own = this.#planned(point, { ...write, governance, joinsNext: undefined }, isGuarded)
    const held = this.#held
    const combined = held ? mergePlanned(held, own) : own
    const isRetried = (isGuarded || setsLifecycle(write)) && !write.requiresUnchangedLog && !held
    const store = () => this.#store(combined.commit)
    const storeNow = (): Promise<CommitResult | undefined> =>
      isRetried ? resultUnlessMoved(store).then((end) => end?.result) : store()
    let result: CommitResult | undefined
    try {
      result = await (this.#thread.trace?.commit(combined.commit, storeNow) ?? storeNow())
    } catch (error) {
      return this.#afterRefusal(point, { given, write, held }, error)
    }
    if (!result) {
      await this.catchUp()
      return this.#append(point, given)
    }

    // It is stored: the state follows.
    this.#held = undefined
    this.fold.ahead = 0
    this.#isDue ||= combined.marksDue
    if (combined.isProgress) this.#thread.onProgress()
    if (write.releases) this.isReleased = true
    this.#report(own.events)
    const last = result.seqs.get(this.#thread.head.id) ?? this.state.seq
    if (rewritesEvents || last !== this.state.seq + own.events.length) return this.catchUp()
    for (const event of own.events) this.fold.push({ seq: this.state.seq + 1, event })
  }

  /** Decides what becomes of a write that the store has refused: another try, another write, or the error. */
  async #afterRefusal(
    point: string,
    { given, write, held }: Refused,
    error: unknown,
  ): Promise<void> {
    if (held) await this.#takeBack(held, error)
    if ((held || needsLife(write)) && isStoreError(error, 'THREAD_TERMINATED')) {
      if (!held) await this.catchUp()
      if (!this.state.terminated) throw error
      if (point === '') return
      const ends = needsLife(write) ? endsOnly(given) : given
      if (!ends) throw new HeldWriteLostError()
      return this.#append(point, ends)
    }
    const isValueRefused = isStoreError(error, 'VALUE_MOVED') || isStoreError(error, 'VALUE_LIMIT')
    if (write.values?.user && isValueRefused)
      return this.#append(point, await this.#afterValueRefused(given, error))
    // Committed alone, the write is right whatever others have appended, unless it demands an unchanged log.
    if (!held || !isStoreError(error, 'LOG_MOVED') || write.requiresUnchangedLog) throw error
    return point === '' ? undefined : this.#append(point, given)
  }

  async #store(commit: Commit): Promise<CommitResult> {
    try {
      return await this.#thread.environment.commit(commit)
    } catch (error) {
      this.isFenced ||= isStoreError(error, 'FENCED')
      throw error
    }
  }

  #planned(point: string, write: Write, isGuarded: boolean): PlannedCommit {
    const isDue = this.#isDue || this.#held?.marksDue === true
    return this.#planner.plan(write, { point, isGuarded, isDue })
  }

  /** Tells telemetry and the logger about events, before the events change the folded state. */
  #report(events: readonly RuntimeEvent[]): void {
    if (this.#isTakingBack) return // they were reported when the write was held
    this.#thread.trace?.committed(events)
    const { logger } = this.#thread.environment
    if (logger) logEvents(logger, this.#thread, events)
  }

  /**
   * Holds a write until the next commit, but adds its events to the state now. Returns false if it has to be
   * committed by itself, because it changes other threads or has records of the governor that cannot be made again.
   */
  async #hold(point: string, write: Write): Promise<boolean> {
    const { joinsNext, requiresUnchangedLog, others = [], governance, onLost } = write
    const hasRecords = governance && governance.events.length + governance.audit.length > 0
    if (!joinsNext || others.length > 0 || (hasRecords && joinsNext !== true)) return false
    if (!this.#held) {
      // Events that others appended while a model or a tool worked are read now. The next commit
      // demands an unchanged log, so it is refused only if more events arrive before it.
      const { seq } = this.state
      await this.catchUp()
      if (requiresUnchangedLog && this.state.seq !== seq)
        throw new StoreError(`The log of thread ${this.#thread.head.id} has changed.`, {
          code: 'LOG_MOVED',
        })
    }
    const own = this.#planned(point, write, false)
    const redo = (): Promise<boolean> => {
      // No records are taken from the governor: those made after this write belong to the later, refused write.
      if (joinsNext !== true) return joinsNext((name, one) => this.#append(name, one))
      return this.#append(point, { ...write, joinsNext: undefined }).then(() => true)
    }
    this.#held = holdWrite(this.#held, own, { redo, onLost })
    this.#report(own.events)
    for (const event of own.events) this.fold.push({ seq: this.state.seq + 1, event })
    this.fold.ahead += own.events.length
    return true
  }

  /**
   * After a refused commit, reads the log again, because the folded state has events that the log
   * lacks, and commits each held write by itself. Throws `HeldWriteLostError` if one of these writes
   * is no longer right: whatever was decided after it has to be decided again.
   */
  async #takeBack({ redo, lost }: HeldWrites, error: unknown): Promise<void> {
    this.#held = undefined
    const callbacks = [...lost]
    this.#isTakingBack = true
    try {
      // After such an error the drain ends.
      if (this.isFenced || isLost(error)) return
      await this.catchUp()
      for (const [place, again] of redo.entries()) {
        if (!(await again())) throw new HeldWriteLostError()
        callbacks[place] = undefined
      }
    } finally {
      this.#isTakingBack = false
      for (const onLost of callbacks) onLost?.()
    }
  }

  /**
   * Compares the values that the write relies on with the log as far as it was read. Returns the write, or its
   * `onConflict` replacement, and whether the commit must be refused if another writer appends to the log in between.
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
        if (given.governance) this.#thread.dropGovernor()
        throw error
      }
      return { write: onConflict(error), isGuarded: false }
    }
  }

  /**
   * Called when the store refused a write because a value of the user has changed (`VALUE_MOVED`) or the user has too
   * many values. Returns the write with the values as they are now or, after a conflict, its `onConflict` replacement.
   */
  async #afterValueRefused(given: Write, error: StoreError): Promise<Write> {
    const { values, onConflict, governance } = given
    try {
      if (error.code === 'VALUE_LIMIT' || !values?.user) throw error
      const user = await freshUserValues(this.#thread.environment.store, values.user)
      return { ...given, values: { ...values, user } }
    } catch (conflict) {
      if (isStoreError(conflict) && conflict.code !== 'VALUE_LIMIT') throw conflict
      if (onConflict) return { ...onConflict(conflict), governance }
      if (governance) this.#thread.dropGovernor()
      throw conflict
    }
  }
}

/** A write that the store has refused: as it was given, as it was checked, and the writes held before it. */
interface Refused {
  readonly given: Write
  readonly write: Write
  readonly held: HeldWrites | undefined
}

/** Whether an error means that a write cannot be stored by this drain, which then ends. */
function isLost(error: unknown): boolean {
  return !isStoreError(error) || error.code === 'FENCED' || error.code.startsWith('STORE_')
}
