import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { migrate } from './migrations.ts'
import { isStoreError, StoreError } from '../store.ts'
import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'

/** Opens or creates a database, makes its commits durable, and migrates it to the newest version. */
export function openDatabase({
  path,
  busyTimeoutMs = 5000,
  maxBytes,
}: {
  readonly path: string
  readonly busyTimeoutMs?: number
  readonly maxBytes?: number
}): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: busyTimeoutMs })
  try {
    // synchronous = FULL: a confirmed commit survives a power failure. secure_delete: erased data is overwritten.
    // page_size: a commit changes a few rows on several pages and writes whole pages, so small pages write less.
    database.exec(`
      PRAGMA page_size = 2048;
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      PRAGMA foreign_keys = ON;
      PRAGMA secure_delete = ON;
      PRAGMA cache_size = -16000;
      PRAGMA journal_size_limit = 67108864;
    `)
    migrate(database, path)
    if (maxBytes !== undefined) {
      const pageSize = Number(database.prepare('PRAGMA page_size').get()?.['page_size'])
      database.exec(`PRAGMA max_page_count = ${Math.max(1, Math.floor(maxBytes / pageSize))}`)
    }
    return database
  } catch (error) {
    database.close()
    throw error
  }
}

/** A lock on a store, held until `release` or until the process ends. */
export interface OwnerLock {
  release(): void
}

const BUSY = 5

/**
 * Makes this process the only owner of a store. The lock is a write transaction on a small database
 * beside the store. The transaction never ends, so the operating system releases the lock when the
 * process dies. Other processes can still read in that small database who the owner is.
 */
export function lockOwner(path: string, startedAt: number): OwnerLock {
  const lockPath = `${path}.lock`
  const database = openLock(path, lockPath)
  try {
    database.exec(`
      BEGIN IMMEDIATE;
      CREATE TABLE IF NOT EXISTS owner (one INTEGER PRIMARY KEY, pid INTEGER, started_at INTEGER);
    `)
    database
      .prepare('REPLACE INTO owner (one, pid, started_at) VALUES (1, ?, ?)')
      .run(process.pid, startedAt)
    // The row is committed first, so that other processes can read who the owner is. If another process begins its
    // transaction before this BEGIN, that process is the owner and this BEGIN fails.
    database.exec('COMMIT; BEGIN IMMEDIATE')
  } catch (error) {
    const problem =
      sqliteCode(error) === BUSY
        ? new StoreError(`The store ${path} is in use by ${ownerIn(database)}.`, {
            code: 'STORE_LOCKED',
            hint: 'One process owns a store. Talk to it over HTTP, or stop it first.',
          })
        : (unwritable(error, path) ??
          new StoreError(`The lock ${lockPath} cannot be used.`, {
            code: 'STORE_CORRUPT',
            hint: 'If no process uses the store, delete this file; it holds no data.',
            cause: error,
          }))
    database.close()
    throw problem
  }
  return { release: () => database.close() }
}

function openLock(path: string, lockPath: string): DatabaseSync {
  try {
    createPrivately(lockPath)
    return new DatabaseSync(lockPath, { timeout: 100 })
  } catch (error) {
    throw sqliteFailure(error, path)
  }
}

/** Describes the process that a lock names. */
function ownerIn(database: DatabaseSync): string {
  try {
    const row = database.prepare('SELECT pid, started_at FROM owner').get()
    if (row)
      return `process ${Number(row['pid'])}, since ${new Date(Number(row['started_at'])).toISOString()}`
  } catch {
    // The owner is writing its own row at this moment.
  }
  return 'another process'
}

/**
 * Creates an empty file that only its owner can read, and its folders; returns false if the file exists. An
 * existing file is not even opened, because closing a file drops the locks that this process has on it.
 */
export function createPrivately(path: string): boolean {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  try {
    closeSync(openSync(path, 'wx', 0o600))
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}

const READ_ONLY = 8
const IO = 10
const CORRUPT = 11
const FULL = 13
const CANNOT_OPEN = 14
const TOO_BIG = 18
const NO_LARGE_FILES = 22
const NOT_A_DATABASE = 26

/** Returns SQLite's primary result code of an error. */
function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error && 'errcode' in error)) return undefined
  return typeof error.errcode === 'number' ? error.errcode & 0xff : undefined
}

/**
 * Converts an error of SQLite or of the file system to a `StoreError` that says what to do; returns any other
 * error unchanged.
 */
export function sqliteFailure(error: unknown, path: string): unknown {
  if (isStoreError(error)) return error
  const code = sqliteCode(error)
  // All statements are fixed, so a missing table or column means that the schema is damaged.
  const isSchemaDamaged = code === 1 && /no such (?:table|column)|has no column/.test(String(error))
  if (code === CORRUPT || code === NOT_A_DATABASE || isSchemaDamaged)
    return new StoreError(`The store ${path} is damaged or not a database.`, {
      code: 'STORE_CORRUPT',
      hint: 'Keep the file to examine it with the `sqlite3` command, and open a backup in its place.',
      cause: error,
    })
  return unwritable(error, path) ?? error
}

/** Returns the error for a file that cannot be written; undefined if the cause is something else. */
function unwritable(cause: unknown, path: string): StoreError | undefined {
  const system = cause instanceof Error && 'code' in cause ? cause.code : undefined
  switch (sqliteCode(cause) ?? system) {
    case FULL:
    case 'ENOSPC':
    case 'EDQUOT':
      return new StoreError(`The store ${path} is full: nothing more can be written.`, {
        code: 'STORE_FULL',
        hint: 'Free space on its disk, or raise `maxBytes` if the store has that limit. Work goes on by itself then.',
        cause,
      })
    case READ_ONLY:
    case CANNOT_OPEN:
    case 'EROFS':
    case 'EACCES':
    case 'EPERM':
      return new StoreError(`The store ${path} cannot be written by this process.`, {
        code: 'STORE_READ_ONLY',
        hint: 'Check that its disk is not mounted read-only, and that this user may write the file and its folder.',
        cause,
      })
    case TOO_BIG:
      return new StoreError(`A row is too big for the store ${path}.`, {
        code: 'STORE_LIMIT',
        hint: 'SQLite stores at most 1 GB in one row. Split the content into several files.',
        cause,
      })
    case IO:
    case NO_LARGE_FILES:
    case 'EFBIG':
    case 'EIO':
      return new StoreError(`The operating system refused to write or read the store ${path}.`, {
        code: 'STORE_LIMIT',
        hint: 'Check the file size limit of the process (`ulimit -f`), the quota of the user and the health of the disk.',
        cause,
      })
    default:
      return undefined
  }
}

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
   * Adds a write. A lazy write survives a crash of the process at once, but a power failure only after
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
