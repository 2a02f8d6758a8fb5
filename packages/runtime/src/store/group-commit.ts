import type { DatabaseSync } from 'node:sqlite'

interface Job {
  readonly work: () => unknown
  readonly isLazy: boolean
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
}

/** The result of a job inside the transaction. Its promise settles once the transaction is durable. */
type Outcome = { readonly value: unknown } | { readonly error: unknown }

/**
 * Combines all writes of one turn of the event loop into one transaction, so that they wait for the disk only
 * once. Each write still succeeds or fails by itself, and its promise settles when it is durable.
 */
export class GroupCommit {
  readonly #database: DatabaseSync
  #jobs: Job[] = []

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  /**
   * Adds a write. A lazy write survives a crash of the process, but it survives a power failure only after a
   * later write was synced to disk.
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
      this.#database.exec('BEGIN IMMEDIATE')
      const [only, ...others] = jobs
      const outcomes =
        only && others.length === 0
          ? [{ value: only.work() }] // a single write needs no savepoint
          : jobs.map((job) => this.#attempt(job.work))
      this.#database.exec('COMMIT')
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
      // A full disk may have ended the whole transaction; then all writes are rejected with its error.
      if (!this.#database.isTransaction) throw error
      this.#database.exec('ROLLBACK TO job; RELEASE job')
      return { error }
    }
  }

  #rollBack(): void {
    if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
  }
}
