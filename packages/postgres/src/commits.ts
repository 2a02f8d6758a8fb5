import { joined, Names, CommitView } from './view.ts'
import { StoreRace, isAnswer, isConflict, isDuplicate, storeFailure } from './errors.ts'
import {
  type Blob,
  type Claim,
  claimedHead,
  type ClaimOptions,
  type Commit,
  type CommitResult,
  type HeldThread,
  isStoreError,
  planCommit,
  StoreError,
} from '@skein/runtime'
import type { Blobs } from './blobs.ts'
import type { Connections, SendStatements } from './connections.ts'
import { changeNumber } from './schema.ts'

/** A commit or a claim that waits for its transaction. */
interface Job {
  readonly names: Names
  readonly keys: readonly string[]
  readonly blobs: readonly Blob[]
  readonly isClaim: boolean
  /** Whether its contents are written before the heads are locked, because that may take long. */
  readonly isLong: boolean
  /** Decides on the locked rows, and puts the changes into the view. Throws if the job is refused. */
  readonly decide: (view: CommitView, now: number) => unknown
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
  /** Whether it is tried in a transaction of its own, because a shared transaction failed. */
  isAlone: boolean
}

/** The result of a job inside its transaction; its promise settles when the transaction is durable. */
type Outcome = { readonly value: unknown } | { readonly error: unknown }

/**
 * A line of transactions, one after the other, with a row in the table `lanes`. Each transaction of a lane
 * raises the number in that row. If a connection breaks while a COMMIT is under way, the number says whether
 * it was performed: the next transaction of the lane first waits for the row, and so for the end of the lost
 * transaction.
 */
interface Lane {
  readonly name: string
  /** The number after the last transaction that is known to be committed; undefined before the first. */
  number: number | undefined
  /** The outcomes of a transaction whose COMMIT was sent but not answered. */
  unsure: Outcome[] | undefined
}

/** How many jobs share a transaction at most. */
const MOST_JOBS = 64
/** How long a transaction may wait for its client or for a lock; afterwards others can go on. */
const TRANSACTION_MS = 10_000
/** How often a transaction is repeated because others got in the way. */
const MOST_CONFLICTS = 20

/**
 * Runs commits and claims. Each transaction needs two round trips: one that locks and reads everything that
 * its jobs name, and one that writes and commits. Jobs that arrive while all lanes are busy share the next
 * transaction. Jobs that name a common thread keep the order in which they were given.
 */
export class Commits {
  readonly #s: string
  readonly #connections: Connections
  readonly #blobs: Blobs
  readonly #free: Lane[]
  readonly #busy = new Set<string>()
  #waiting: Job[] = []
  #isStarting = false
  #running = 0
  #onIdle: (() => void) | undefined
  /** How many transactions were begun. */
  transactions = 0

  constructor(options: {
    readonly s: string
    readonly connections: Connections
    readonly blobs: Blobs
    /** A name that no other node has or had. */
    readonly node: string
    readonly lanes: number
  }) {
    this.#s = options.s
    this.#connections = options.connections
    this.#blobs = options.blobs
    this.#free = Array.from({ length: options.lanes }, (_, index) => ({
      name: `${options.node} ${index}`,
      number: undefined,
      unsure: undefined,
    }))
  }

  commit(commit: Commit): Promise<CommitResult> {
    const names = new Names()
    names.add(commit)
    return this.#add<CommitResult>(names, commit.blobs ?? [], false, (view) => {
      const plan = planCommit(commit, view)
      view.apply(plan)
      return plan.result
    })
  }

  claim(threadId: string, options: ClaimOptions): Promise<Claim | HeldThread | undefined> {
    const names = new Names()
    names.addThread(threadId)
    return this.#add<Claim | HeldThread | undefined>(names, [], true, (view, now) => {
      const before = view.head(threadId)
      if (!before) return undefined
      const claimed = claimedHead(before, options, now)
      if ('heldBy' in claimed) return claimed
      view.setHead(claimed)
      return { head: claimed, epoch: claimed.epoch }
    })
  }

  /** Resolves when nothing runs or waits. */
  async idle(): Promise<void> {
    if (this.#running === 0 && this.#waiting.length === 0) return
    await new Promise<void>((resolve) => (this.#onIdle = resolve))
  }

  /** Removes the rows of the lanes. */
  async end(): Promise<void> {
    const names = this.#free.flatMap(({ name, number }) => (number === undefined ? [] : [name]))
    const text = `DELETE FROM ${this.#s}.lanes WHERE name = ANY($1)`
    if (names.length > 0) await this.#connections.once((run) => run([{ text, values: [names] }]))
  }

  #add<T>(
    names: Names,
    blobs: readonly Blob[],
    isClaim: boolean,
    decide: (view: CommitView, now: number) => T,
  ): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const keys = names.keys(blobs)
      const isLong = this.#blobs.areLong(blobs)
      const isAlone = isLong
      this.#waiting.push({ names, keys, blobs, isClaim, isLong, decide, resolve, reject, isAlone })
      // Deferred, so that jobs that arrive together share a transaction.
      if (this.#isStarting) return
      this.#isStarting = true
      queueMicrotask(() => {
        this.#isStarting = false
        this.#start()
      })
    })
  }

  /** Starts transactions while there are lanes and jobs whose names are free. */
  #start(): void {
    while (this.#free.length > 0) {
      const jobs = this.#take()
      if (jobs.length === 0) break
      const lane = this.#free.pop()!
      this.#running += 1
      for (const { keys } of jobs) for (const key of keys) this.#busy.add(key)
      void this.#run(lane, jobs).finally(() => {
        for (const { keys } of jobs) for (const key of keys) this.#busy.delete(key)
        this.#free.push(lane)
        this.#running -= 1
        this.#start()
        if (this.#running === 0 && this.#waiting.length === 0) this.#onIdle?.()
      })
    }
  }

  /** Takes jobs for one transaction, in order. A job waits for those before it that name the same rows. */
  #take(): Job[] {
    const jobs: Job[] = []
    const left: Job[] = []
    const passed = new Set<string>()
    for (const [index, job] of this.#waiting.entries()) {
      if (jobs.length === MOST_JOBS || jobs[0]?.isAlone) {
        left.push(...this.#waiting.slice(index))
        break
      }
      const isFree = job.keys.every((key) => !this.#busy.has(key) && !passed.has(key))
      if (isFree && (jobs.length === 0 || !job.isAlone)) jobs.push(job)
      else {
        left.push(job)
        for (const key of job.keys) passed.add(key)
      }
    }
    this.#waiting = left
    return jobs
  }

  async #run(lane: Lane, jobs: readonly Job[]): Promise<void> {
    try {
      const outcomes = await this.#attempts(lane, jobs)
      for (const [index, { resolve, reject }] of jobs.entries()) {
        const outcome = outcomes[index]!
        if ('value' in outcome) resolve(outcome.value as never)
        else reject(outcome.error)
      }
    } catch (error) {
      if (jobs.length === 1 || isStoreError(error)) {
        for (const { reject } of jobs) reject(storeFailure(error))
        return
      }
      // One job made the whole transaction fail. Nothing was committed, so each job is tried by itself.
      for (const job of jobs) job.isAlone = true
      this.#waiting = [...jobs, ...this.#waiting]
    }
  }

  /** Runs the transaction until it is committed, or fails for a lasting reason. */
  async #attempts(lane: Lane, jobs: readonly Job[]): Promise<Outcome[]> {
    let conflicts = 0
    for (const { blobs } of jobs) await this.#blobs.putOutside(blobs)
    try {
      return await this.#connections.retrying(async () => {
        let sent: Outcome[] | undefined
        try {
          return await this.#connections.once((run) =>
            this.#transaction(run, lane, jobs, (outcomes) => (sent = outcomes)),
          )
        } catch (error) {
          if (sent && !isAnswer(error)) lane.unsure = sent
          const isRace = isDuplicate(error) && jobs.length === 1
          if (!isRace && !isConflict(error)) throw error
          if (++conflicts < MOST_CONFLICTS) throw isRace ? new StoreRace(error) : error
          throw new Error(`A transaction was given up after ${conflicts} conflicts.`, {
            cause: error,
          })
        }
      })
    } catch (error) {
      if (!lane.unsure) throw error
      // The outcome of the lost transaction no longer matters, because nobody waits for it.
      lane.unsure = undefined
      lane.number = undefined
      throw new StoreError('The database cannot be reached, and a commit may have been written.', {
        code: 'STORE_UNREACHABLE',
        hint: 'The answer to COMMIT was lost, and the server did not come back in time. Read again what is there.',
        cause: error,
      })
    }
  }

  async #transaction(
    run: SendStatements,
    lane: Lane,
    jobs: readonly Job[],
    onCommit: (outcomes: Outcome[]) => void,
  ): Promise<Outcome[]> {
    this.transactions += 1
    const names = jobs.length === 1 ? jobs[0]!.names : joined(jobs)
    const reads = names.reading(this.#s)
    const long = jobs.flatMap((job) => (job.isLong ? job.blobs : []))
    const isTimed = jobs.some((job) => job.isClaim)
    const beginning = [{ text: 'BEGIN ISOLATION LEVEL READ COMMITTED' }, this.#laneStatement(lane)]
    const reading = [
      ...reads.map(({ statement }) => statement),
      ...(isTimed ? [{ text: CLOCK, values: [] }] : []),
    ]
    const first = await run(long.length > 0 ? beginning : [...beginning, ...reading])
    const { number, change } = first[1]![0] as { readonly number: number; readonly change: number }
    const { unsure } = lane
    if (unsure) {
      // The lane is locked now, so the lost transaction has ended, and the number says how. Nothing is noted
      // before the lane is free again, because this connection may be lost too.
      const isWritten = number === lane.number! + 2
      if (isWritten) await run([{ text: 'ROLLBACK' }])
      lane.unsure = undefined
      if (isWritten) {
        lane.number = number - 1
        return unsure
      }
    }
    if (long.length > 0) await this.#blobs.putInside(run, long)
    const rows = long.length > 0 ? await run(reading) : first.slice(2)
    const view = new CommitView(change)
    for (const [index, { put }] of reads.entries()) put(rows[index]!, view)
    const now = isTimed ? (rows[reads.length]![0]!['now'] as number) : 0
    const outcomes = jobs.map(({ decide }): Outcome => {
      try {
        return { value: decide(view, now) }
      } catch (error) {
        return { error }
      }
    })
    if (view.isUnchanged) {
      await run([{ text: 'ROLLBACK' }])
      return outcomes
    }
    // Short contents are written with the rest, and only those of commits that were not refused.
    const short = jobs.flatMap((job, index) =>
      job.isLong || 'error' in outcomes[index]! ? [] : job.blobs,
    )
    const writing = [...this.#blobs.putting(short), ...view.statements(this.#s), { text: 'COMMIT' }]
    // Until the number of the lane is known, a lost COMMIT could not be told from one that was performed.
    lane.number ??= number - 1
    onCommit(outcomes)
    await run(writing)
    lane.number = number
    return outcomes
  }

  /** Takes the lane, and numbers the changes of the transaction. The settings end with the transaction, so they pass through a pooler. */
  #laneStatement({ name }: Lane): { text: string; values: string[] } {
    const limits = ['idle_in_transaction_session_timeout', 'lock_timeout']
      .map((setting) => `set_config('${setting}', '${TRANSACTION_MS}', true)`)
      .join(', ')
    return {
      text: `INSERT INTO ${this.#s}.lanes AS lane (name, number, used_at)
        VALUES ($1, 1, clock_timestamp())
        ON CONFLICT (name) DO UPDATE SET number = lane.number + 1, used_at = clock_timestamp()
        RETURNING number, ${changeNumber(this.#s)} AS change, ${limits}`,
      values: [name],
    }
  }
}

/** The time of the database, in milliseconds, after all locks were taken. */
const CLOCK = 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now'
