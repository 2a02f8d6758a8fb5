import type { DatabaseSync } from 'node:sqlite'

interface Job {
  readonly work: () => unknown
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
}

/** How a job ended inside the transaction; told when that is durable. */
type Outcome = { readonly value: unknown } | { readonly error: unknown }

/**
 * Puts the writes that are asked for in one turn of the event loop into one transaction, so that they
 * share the wait for the disk. Each is still whole or absent by itself, and answered when it is durable.
 */
export class GroupCommit {
  readonly #database: DatabaseSync
  #jobs: Job[] = []

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  write<T>(work: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#jobs.length === 0) setImmediate(() => this.flush())
      this.#jobs.push({ work, resolve, reject })
    })
  }

  /** Does what was asked for so far. */
  flush(): void {
    const jobs = this.#jobs
    this.#jobs = []
    if (jobs.length === 0) return
    try {
      this.#database.exec('BEGIN IMMEDIATE')
      const outcomes = jobs.map((job) => this.#attempt(job.work))
      this.#database.exec('COMMIT')
      for (const [index, job] of jobs.entries()) tell(job, outcomes[index])
    } catch (error) {
      this.#rollBack()
      for (const { reject } of jobs) reject(error)
    }
  }

  #attempt(work: () => unknown): Outcome {
    this.#database.exec('SAVEPOINT job')
    try {
      const value = work()
      this.#database.exec('RELEASE job')
      return { value }
    } catch (error) {
      // A full disk may have ended the whole transaction; then this throws, and all are refused.
      this.#database.exec('ROLLBACK TO job; RELEASE job')
      return { error }
    }
  }

  #rollBack(): void {
    if (this.#database.isTransaction) this.#database.exec('ROLLBACK')
  }
}

function tell({ resolve, reject }: Job, outcome: Outcome | undefined): void {
  if (outcome && 'value' in outcome) resolve(outcome.value as never)
  else reject(outcome?.error)
}
