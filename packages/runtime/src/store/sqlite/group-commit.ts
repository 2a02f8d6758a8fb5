import type { DatabaseSync, StatementSync } from 'node:sqlite'

interface Job {
  readonly work: () => unknown
  readonly isLazy: boolean
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
}

/** The result of one write inside the transaction. The caller gets it only once the transaction is durable. */
type Outcome = { readonly value: unknown } | { readonly error: unknown }

/**
 * Combines all writes of one turn of the event loop into one transaction, so that they wait for the disk only
 * once. Each write still succeeds or fails by itself, and its promise settles when it is durable.
 */
export class GroupCommit {
  readonly #database: DatabaseSync
  readonly #onRollBack: () => void
  readonly #begin: StatementSync
  readonly #commit: StatementSync
  #jobs: Job[] = []

  /** `onRollBack` is called when a write was undone, because rows that it had read or written may be cached. */
  constructor(database: DatabaseSync, onRollBack: () => void = () => {}) {
    this.#database = database
    this.#onRollBack = onRollBack
    this.#begin = database.prepare('BEGIN IMMEDIATE')
    this.#commit = database.prepare('COMMIT')
  }

  /**
   * Adds a write. A lazy write survives a crash of the process immediately, but a power failure only after
   * a later write was synced to disk.
   */
  write<T>(work: () => T, { isLazy = false }: { readonly isLazy?: boolean } = {}): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#jobs.length === 0) setImmediate(() => this.flush())
      this.#jobs.push({ work, isLazy, resolve, reject })
    })
  }

  /** Runs the pending writes in one transaction. */
  flush(): void {
    const jobs = this.#jobs
    this.#jobs = []
    if (jobs.length === 0) return
    const isLazy = jobs.every((job) => job.isLazy)
    try {
      if (isLazy) this.#database.exec('PRAGMA synchronous = NORMAL')
      this.#begin.run()
      const [only, ...others] = jobs
      const outcomes =
        only && others.length === 0
          ? [{ value: only.work() }] // a single write needs no savepoint
          : jobs.map((job) => this.#attempt(job.work))
      this.#commit.run()
      for (const [index, { resolve, reject }] of jobs.entries()) {
        const outcome = outcomes[index]
        if (outcome && 'value' in outcome) resolve(outcome.value as never)
        else reject(outcome?.error)
      }
    } catch (error) {
      this.#rollBack()
      for (const { reject } of jobs) reject(error)
    } finally {
      if (isLazy) this.#database.exec('PRAGMA synchronous = FULL')
    }
  }

  #attempt(work: () => unknown): Outcome {
    this.#database.exec('SAVEPOINT job')
    try {
      const value = work()
      this.#database.exec('RELEASE job')
      return { value }
    } catch (error) {
      // If the disk is full, SQLite may have ended the whole transaction; all its writes are then
      // rejected with this error.
      if (!this.#database.isTransaction) throw error
      this.#database.exec('ROLLBACK TO job; RELEASE job')
      this.#onRollBack()
      return { error }
    }
  }

  #rollBack(): void {
    if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
    this.#onRollBack()
  }
}
