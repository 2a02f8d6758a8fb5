import { DatabaseSync } from 'node:sqlite'
import { sqliteCode, sqliteFailure, unwritable } from './sqlite-failure.ts'
import { createPrivately } from './sqlite-file.ts'
import { StoreError } from '../store-error.ts'

/** A lock on a store, held until `release` or until the process ends. */
export interface OwnerLock {
  release(): void
}

const BUSY = 5

/**
 * Makes this process the only owner of a store. The lock is a write transaction on a small database
 * next to the store. The transaction never ends, so the operating system releases the lock when the
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
