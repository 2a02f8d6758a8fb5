import { DatabaseSync } from 'node:sqlite'
import { createPrivately } from './private-file.ts'
import { sqliteCode } from './sqlite-failure.ts'
import { StoreError } from './store.ts'

/** Held until it is released or the process dies, however it dies. */
export interface OwnerLock {
  release(): void
}

const BUSY = 5

/**
 * Makes this process the only owner of a store. The lock is a write transaction on a small database
 * beside it, never ended: the system lets go of it when the process dies, and others can still read in
 * it who the owner is.
 */
export function lockOwner(path: string, startedAt: number): OwnerLock {
  const lockPath = `${path}.lock`
  createPrivately(lockPath)
  const database = new DatabaseSync(lockPath, { timeout: 100 })
  try {
    takeOver(database, startedAt)
  } catch (error) {
    const problem =
      sqliteCode(error) === BUSY ? locked(path, ownerOf(database)) : unusable(lockPath, error)
    database.close()
    throw problem
  }
  return { release: () => database.close() }
}

function takeOver(database: DatabaseSync, startedAt: number): void {
  database.exec(`
    BEGIN IMMEDIATE;
    CREATE TABLE IF NOT EXISTS owner (one INTEGER PRIMARY KEY, pid INTEGER, started_at INTEGER);
  `)
  database
    .prepare('REPLACE INTO owner (one, pid, started_at) VALUES (1, ?, ?)')
    .run(process.pid, startedAt)
  // Whoever comes between is the owner then, and this process is refused.
  database.exec('COMMIT; BEGIN IMMEDIATE')
}

interface Owner {
  readonly pid: number
  readonly startedAt: number
}

function ownerOf(database: DatabaseSync): Owner | undefined {
  try {
    const row = database.prepare('SELECT pid, started_at FROM owner').get()
    return row && { pid: Number(row['pid']), startedAt: Number(row['started_at']) }
  } catch {
    // It is being written at this moment.
    return undefined
  }
}

function locked(path: string, owner: Owner | undefined): StoreError {
  const who = owner
    ? `process ${owner.pid}, since ${new Date(owner.startedAt).toISOString()}`
    : 'another process'
  return new StoreError(`The store ${path} is in use by ${who}.`, {
    code: 'STORE_LOCKED',
    hint: 'One process owns a store. Talk to it over HTTP, or stop it first.',
  })
}

function unusable(lockPath: string, cause: unknown): StoreError {
  return new StoreError(`The lock ${lockPath} cannot be used.`, {
    code: 'STORE_CORRUPT',
    hint: 'If no process uses the store, delete this file; it holds no data.',
    cause,
  })
}
