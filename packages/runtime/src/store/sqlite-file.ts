import { backup, DatabaseSync } from 'node:sqlite'
import { migrate } from './migrations.ts'
import { isStoreError, StoreError } from './store.ts'
import { closeSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'

/** Opens or creates a database, sets it up for durable commits, and migrates it to the newest version. */
export function openDatabase(path: string, busyTimeoutMs: number): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: busyTimeoutMs })
  try {
    // FULL: a confirmed commit survives a power failure. secure_delete: erased data is overwritten.
    database.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = FULL;
      PRAGMA foreign_keys = ON;
      PRAGMA secure_delete = ON;
      PRAGMA cache_size = -16000;
      PRAGMA journal_size_limit = 67108864;
    `)
    migrate(database, path)
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
 * Makes this process the only owner of a store. The lock is a write transaction on a small database beside
 * the store. The transaction is never ended, so the operating system releases the lock when the process dies.
 * Other processes can still read from that database who the owner is.
 */
export function lockOwner(path: string, startedAt: number): OwnerLock {
  const lockPath = `${path}.lock`
  createPrivately(lockPath)
  const database = new DatabaseSync(lockPath, { timeout: 100 })
  try {
    database.exec(`
      BEGIN IMMEDIATE;
      CREATE TABLE IF NOT EXISTS owner (one INTEGER PRIMARY KEY, pid INTEGER, started_at INTEGER);
    `)
    database
      .prepare('REPLACE INTO owner (one, pid, started_at) VALUES (1, ?, ?)')
      .run(process.pid, startedAt)
    // Committed first, so that other processes can read the owner. If another process takes the lock between
    // the two statements, it becomes the owner and this BEGIN fails.
    database.exec('COMMIT; BEGIN IMMEDIATE')
  } catch (error) {
    const problem =
      sqliteCode(error) === BUSY
        ? new StoreError(`The store ${path} is in use by ${ownerIn(database)}.`, {
            code: 'STORE_LOCKED',
            hint: 'One process owns a store. Talk to it over HTTP, or stop it first.',
          })
        : new StoreError(`The lock ${lockPath} cannot be used.`, {
            code: 'STORE_CORRUPT',
            hint: 'If no process uses the store, delete this file; it holds no data.',
            cause: error,
          })
    database.close()
    throw problem
  }
  return { release: () => database.close() }
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
 * Copies all pages in one step, because a copy in several steps would start again after every commit in
 * between.
 */
const ALL_PAGES = 2 ** 31 - 1

/** Copies a database while it is in use. The copy has a temporary name until it is complete. */
export async function copyDatabase(
  database: DatabaseSync,
  path: string,
  to: string,
): Promise<void> {
  const part = `${to}.part`
  rmSync(part, { force: true })
  createPrivately(part)
  // SQLite copies in another thread over a separate connection, while this thread continues to use ours.
  const source = path === ':memory:' ? database : new DatabaseSync(path)
  try {
    await backup(source, part, { rate: ALL_PAGES })
  } finally {
    if (source !== database) source.close()
  }
  renameSync(part, to)
}

/** Checks a whole database and lists the problems that SQLite finds; empty if there are none. */
export function findDamage(database: DatabaseSync): readonly string[] {
  try {
    const rows = database.prepare('PRAGMA integrity_check').all()
    return rows.map((row) => `${row['integrity_check']}`).filter((text) => text !== 'ok')
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)]
  }
}

/**
 * Removes deleted data from the files. `secure_delete` overwrites deleted rows in place, but older copies may
 * remain in the write-ahead log and in pages from which rows were moved, so the whole file is rewritten. That
 * takes about 10 ms per MB and blocks the process.
 */
export function scrub(database: DatabaseSync, path: string): void {
  database.exec('VACUUM')
  const answer = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()
  if (answer?.['busy'] === 0) return
  throw new StoreError(
    `Erased data is still in ${path}-wal, because another program reads the store.`,
    {
      code: 'STORE_LOCKED',
      hint: 'End the other program and erase again.',
    },
  )
}

/**
 * Creates an empty file that only its owner can read, and its folders; returns false if the file exists. An
 * existing file is not even opened, because closing it would drop this process's locks on it.
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

const CORRUPT = 11
const NOT_A_DATABASE = 26

/** Returns SQLite's primary result code of an error. */
function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error && 'errcode' in error)) return undefined
  return typeof error.errcode === 'number' ? error.errcode & 0xff : undefined
}

/** Converts the error of a damaged file to `STORE_CORRUPT`; returns any other error unchanged. */
export function sqliteFailure(error: unknown, path: string): unknown {
  const code = sqliteCode(error)
  if (isStoreError(error) || (code !== CORRUPT && code !== NOT_A_DATABASE)) return error
  return new StoreError(`The store ${path} is damaged or not a database.`, {
    code: 'STORE_CORRUPT',
    hint: 'Keep the file to examine it with the `sqlite3` command, and open a backup in its place.',
    cause: error,
  })
}
