import { CommitView, joined } from './view.ts'
import { Names } from './commit-names.ts'
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

/** A commit, or a claim of a thread, that waits to be part of a transaction. */
interface Job {
  readonly names: Names
  readonly keys: readonly string[]
  readonly blobs: readonly Blob[]
  readonly isClaim: boolean
  /** Whether its blobs are written before the rows of threads are locked, because that may take long. */
  readonly isLong: boolean
  /** Checks the locked rows and adds the changes to the view. Throws if the job is refused. */
  readonly decide: (view: CommitView, now: number) => unknown
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
  /** Whether the job gets a transaction of its own, because a transaction shared with others failed. */
  isAlone: boolean
}

/** The result of a job inside its transaction. The caller gets it only once the transaction is durable. */
type Outcome = { readonly value: unknown } | { readonly error: unknown }

/**
 * A line of transactions, one after the other, with a row in the table `lanes`. Each transaction of a
 * lane raises the number in that row. If a connection breaks during a COMMIT, the number shows whether
 * the COMMIT was performed: the next transaction of the lane first waits for the row lock, and so for
 * the end of the lost transaction.
 */
interface Lane {
  readonly name: string
  /** The number after the last transaction that was certainly committed; undefined before the first. */
  number: number | undefined
  /** The results of a transaction whose COMMIT was sent but not answered. */
  unsure: Outcome[] | undefined
}

/** How many jobs share a transaction at most. */
const MOST_JOBS = 64
/** How long a transaction may wait for its client or for a lock, so that others are not blocked for longer. */
const TRANSACTION_MS = 10_000
/** How often a transaction is repeated because of conflicts with other transactions. */
const MOST_CONFLICTS = 20

/**
 * Runs commits and claims. A transaction needs two round trips: the first locks and reads every row
 * that its jobs name, the second writes and commits. Jobs that arrive while all lanes are busy share
 * the next transaction. Jobs that name the same thread keep the order in which they were given.
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
    /** A name that no other node has now or had before. */
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
      const claimedRow = claimedHead(before, options, now)
      if ('heldBy' in claimedRow) return claimedRow
      view.setHead(claimedRow)
      return { head: claimedRow, epoch: claimedRow.epoch }
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
      // Deferred to a microtask, so that jobs that arrive together share a transaction.
      if (this.#isStarting) return
      this.#isStarting = true
      queueMicrotask(() => {
        this.#isStarting = false
        this.#start()
      })
    })
  }

  /** Starts transactions while a lane is free and there are jobs whose rows no running transaction uses. */
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

  /** Takes jobs for one transaction, in order. A job stays in line if a job before it names the same rows. */
  #take(): Job[] {
    const jobs: Job[] = []
    const remaining: Job[] = []
    const earlierIds = new Set<string>()
    for (const [index, job] of this.#waiting.entries()) {
      if (jobs.length === MOST_JOBS || jobs[0]?.isAlone) {
        remaining.push(...this.#waiting.slice(index))
        break
      }
      const isFree = job.keys.every((key) => !this.#busy.has(key) && !earlierIds.has(key))
      if (isFree && (jobs.length === 0 || !job.isAlone)) jobs.push(job)
      else {
        remaining.push(job)
        for (const key of job.keys) earlierIds.add(key)
      }
    }
    this.#waiting = remaining
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
      // One of the jobs made the whole transaction fail. Nothing was committed, so each job is now tried by itself.
      for (const job of jobs) job.isAlone = true
      this.#waiting = [...jobs, ...this.#waiting]
    }
  }

  /** Runs the transaction until it is committed, or fails for a permanent reason. */
  async #attempts(lane: Lane, jobs: readonly Job[]): Promise<Outcome[]> {
    let conflicts = 0
    for (const { blobs } of jobs) await this.#blobs.putOutside(blobs)
    try {
      return await this.#connections.retrying(async () => {
        let answers: Outcome[] | undefined
        try {
          return await this.#connections.once((run) =>
            this.#transaction(run, lane, jobs, (outcomes) => (answers = outcomes)),
          )
        } catch (error) {
          if (answers && !isAnswer(error)) lane.unsure = answers
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
      // All its jobs are rejected here, so it no longer matters whether the lost transaction was committed.
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
      // This transaction has the row of the lane, so the lost one has ended: the number tells how.
      // `lane` changes only after the ROLLBACK, because this connection may break too.
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
    // Short blobs are written together with the rest, and only those of commits that were not refused.
    const short = jobs.flatMap((job, index) =>
      job.isLong || 'error' in outcomes[index]! ? [] : job.blobs,
    )
    const writing = [...this.#blobs.putting(short), ...view.statements(this.#s), { text: 'COMMIT' }]
    // The number before this COMMIT must be known; otherwise one could not tell later whether the COMMIT was performed.
    lane.number ??= number - 1
    onCommit(outcomes)
    await run(writing)
    lane.number = number
    return outcomes
  }

  /** Locks the lane, and numbers the changes. The settings end with the transaction, so a pooler allows them. */
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

/** The time of the database in milliseconds; read after all locks were taken. */
const CLOCK = 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now'
