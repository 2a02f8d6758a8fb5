import { manualClock, type ManualClock, type Random } from '@skein/base'
import type { Claim, ClaimOptions, HeldThread, Store } from '../store/store.ts'
import type { Commit, CommitResult } from '../store/commit.ts'
import type { Timers } from '../dispatch/dispatcher.ts'

/**
 * Chooses the next job at random, but reproducibly. Every job waits for its turn; when nothing else runs, one
 * waiting job is chosen. The same random numbers produce the same order, as long as jobs wait only for
 * promises, not for real timers, sockets or threads.
 */
export interface SeededScheduler {
  /** Creates a group of jobs that are stopped, frozen or killed together, such as one runtime. */
  lane(name: string): Lane
  /** Runs one waiting job. Returns false when none is waiting. */
  step(): Promise<boolean>
  /** Resolves when all pending promises have run. */
  quiet(): Promise<void>
  /** The number of waiting jobs, except those of frozen and dead lanes. */
  readonly waiting: number
}

/** A group of jobs that are stopped, frozen or killed together, such as one runtime. */
export interface Lane {
  readonly name: string
  readonly state: LaneState
  /** Waits for a turn; an abort ends the wait. Never resolves once the lane is dead. */
  turn(label: string, signal?: AbortSignal): Promise<void>
  /** Does the work at its turn; no other job runs at the same time. */
  perform<T>(label: string, work: () => Promise<T>): Promise<T>
  /** Prevents all jobs of the lane from running until `thaw`. */
  freeze(): void
  thaw(): void
  /** Prevents all jobs of the lane from ever running or settling again, like the death of a process. */
  kill(): void
}

/** Whether the jobs of a lane may run. */
export type LaneState = 'running' | 'frozen' | 'dead'

/** Thrown by the work of `perform` when it cannot run now; `perform` then runs it again at a later turn. */
export class NotNowError extends Error {}

interface Job {
  readonly lane: OwnLane
  readonly label: string
  readonly work: () => Promise<void>
}

/** Options of `seededScheduler`. */
export interface SeededSchedulerOptions {
  readonly random: Random
  /** Called at every turn, for traces. */
  readonly onTurn?: (lane: string, label: string) => void
  /** Resolves when everything that answers in real time, e.g. a database, has answered. */
  readonly settled?: (() => Promise<void>) | undefined
}

/** Creates a scheduler that is driven by `step`. */
export function seededScheduler({
  random,
  onTurn,
  settled = quiet,
}: SeededSchedulerOptions): SeededScheduler {
  const jobs: Job[] = []
  const ready = () => jobs.filter(({ lane }) => lane.state === 'running')
  return {
    lane: (name) => new OwnLane(name, jobs),
    async step() {
      await settled()
      const able = ready()
      if (able.length === 0) return false
      const job = able[Math.floor(random() * able.length)]!
      jobs.splice(jobs.indexOf(job), 1)
      onTurn?.(job.lane.name, job.label)
      try {
        await job.work()
      } catch (error) {
        if (!(error instanceof NotNowError)) throw error
        if (job.lane.state !== 'dead') jobs.push(job)
      }
      return true
    },
    quiet: settled,
    get waiting() {
      return ready().length
    },
  }
}

class OwnLane implements Lane {
  readonly name: string
  readonly #jobs: Job[]
  #state: LaneState = 'running'

  constructor(name: string, jobs: Job[]) {
    this.name = name
    this.#jobs = jobs
  }

  get state(): LaneState {
    return this.#state
  }

  turn(label: string, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (this.#state === 'dead' || signal?.aborted) return signal?.aborted && resolve()
      const job: Job = { lane: this, label, work: async () => resolve() }
      this.#jobs.push(job)
      signal?.addEventListener('abort', () => this.#leave(job, resolve), { once: true })
    })
  }

  #leave(job: Job, resolve: () => void): void {
    const place = this.#jobs.indexOf(job)
    if (place < 0) return
    this.#jobs.splice(place, 1)
    resolve()
  }

  perform<T>(label: string, work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#state === 'dead') return
      const perform = async (): Promise<void> => {
        try {
          const value = await work()
          if (this.#state !== 'dead') resolve(value)
        } catch (error) {
          if (error instanceof NotNowError) throw error
          if (this.#state !== 'dead') reject(error)
        }
      }
      this.#jobs.push({ lane: this, label, work: perform })
    })
  }

  freeze(): void {
    if (this.#state === 'running') this.#state = 'frozen'
  }

  thaw(): void {
    if (this.#state === 'frozen') this.#state = 'running'
  }

  kill(): void {
    this.#state = 'dead'
    const others = this.#jobs.filter(({ lane }) => lane !== this)
    this.#jobs.splice(0, this.#jobs.length, ...others)
  }
}

/**
 * Waits until all pending promise callbacks have run. This takes two turns of the event loop, because
 * work on a thread that pauses for timers continues only in the next turn (see `EventLoopYield`).
 */
function quiet(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
}

/**
 * The moment when the process dies: before the commit, or after it is durable but before its promise
 * resolves.
 */
export type CrashMoment = 'before' | 'after'

/** Options of `crashStore`. */
export interface CrashStoreOptions {
  /** The lane of the runtime that uses the store; every write waits for its turn in this lane. */
  readonly lane: Lane
  /** Decides whether the process dies at a commit. Called once per commit. */
  readonly crashAt?: (commit: Commit) => CrashMoment | undefined
  /** Ends the runtime, by killing or freezing its lane. */
  readonly onCrash?: (moment: CrashMoment, commit: Commit) => void
  /** Called with the result of each commit, or with the reason why it was refused. */
  readonly onCommit?: (commit: Commit, outcome: CommitOutcome) => void
  readonly onClaim?: (threadId: string, claim: Claim | HeldThread | undefined) => void
}

/** The outcome of a commit. */
export type CommitOutcome =
  | { readonly type: 'written'; readonly seqs: ReadonlyMap<string, number> }
  | { readonly type: 'refused'; readonly error: unknown }

/**
 * Wraps a store for one runtime whose process may die at any commit. Closing it leaves the underlying store
 * open for the next runtime.
 */
export function crashStore(store: Store, options: CrashStoreOptions): Store {
  const { lane, crashAt, onCrash, onCommit, onClaim } = options
  const commits = new Set<Commit>()

  async function commit(it: Commit): Promise<CommitResult> {
    const isFirst = !commits.has(it)
    commits.add(it)
    const moment = isFirst ? crashAt?.(it) : undefined
    if (moment === 'before') {
      onCrash?.(moment, it)
      throw new NotNowError()
    }
    try {
      const result = await store.commit(it)
      onCommit?.(it, { type: 'written', seqs: result.seqs })
      if (moment === 'after') onCrash?.(moment, it)
      return result
    } catch (error) {
      if (error instanceof NotNowError) throw error
      onCommit?.(it, { type: 'refused', error })
      throw error
    }
  }

  async function claim(
    threadId: string,
    claimOptions: ClaimOptions,
  ): Promise<Claim | HeldThread | undefined> {
    const holder = await store.claim(threadId, claimOptions)
    onClaim?.(threadId, holder)
    return holder
  }

  return new Proxy(store, {
    get(target, name) {
      if (name === 'close') return async () => {}
      if (name === 'commit')
        return (it: Commit) => lane.perform(`commit ${it.point}`, () => commit(it))
      if (name === 'claim')
        return (id: string, own: ClaimOptions) => lane.perform(`claim ${id}`, () => claim(id, own))
      if (name === 'renew')
        return (ids: readonly string[], own: ClaimOptions) =>
          lane.perform('renew', () => store.renew(ids, own))
      if (name === 'release')
        return (owner: string, ids?: readonly string[]) =>
          lane.perform('release', () => store.release(owner, ids))
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

/** Timers that fire only when a test advances the time. */
export interface ManualTimers extends Timers {
  /** Advances the time and fires due timers in order; the work of each timer finishes before the next fires. */
  advance(ms: number): Promise<void>
  /** Advances the time to the next timer. Returns false when there is none. */
  advanceToNext(): Promise<boolean>
  /** The times of the pending timers, the earliest first. */
  pending(): readonly number[]
}

interface Ring {
  readonly at: number
  readonly callback: () => void
}

/** Creates virtual time for tests and simulations; `clock` shows that time. */
export function manualTimers(clock: ManualClock = manualClock()): ManualTimers {
  const rings = new Set<Ring>()
  const next = () => [...rings].toSorted((a, b) => a.at - b.at)[0]
  const ring = async (it: Ring) => {
    rings.delete(it)
    clock.advance(Math.max(it.at - clock.now(), 0))
    it.callback()
    await quiet()
  }
  return {
    now: () => clock.now(),
    set(ms, callback) {
      const it: Ring = { at: clock.now() + Math.max(ms, 0), callback }
      rings.add(it)
      return it
    },
    clear: (handle) => void rings.delete(handle as Ring),
    async advance(ms) {
      const until = clock.now() + ms
      for (let it = next(); it && it.at <= until; it = next()) await ring(it)
      clock.advance(until - clock.now())
      await quiet()
    },
    async advanceToNext() {
      const it = next()
      if (it) await ring(it)
      return it !== undefined
    },
    pending: () => [...rings].map(({ at }) => at).toSorted((a, b) => a - b),
  }
}
