import { backup, DatabaseSync } from 'node:sqlite'
import { migrate } from './migrations.ts'
import { isStoreError, StoreError } from './store.ts'
import { closeSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'

/** Opens a database, new or old, as durably as SQLite can, and brings it to the newest version. */
export function openDatabase(path: string, busyTimeoutMs: number): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: busyTimeoutMs })
  try {
    // FULL: an answered commit survives a power cut. secure_delete: what is erased is overwritten.
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

/** All pages in one step: a copy that takes several begins again with every commit between them. */
const ALL_PAGES = 2 ** 31 - 1

/** Copies a database beside the running work; under another name until the copy is whole. */
export async function copyDatabase(
  database: DatabaseSync,
  path: string,
  to: string,
): Promise<void> {
  const part = `${to}.part`
  rmSync(part, { force: true })
  createPrivately(part)
  // A connection of its own: another thread copies, and this one goes on using ours.
  const source = path === ':memory:' ? database : new DatabaseSync(path)
  try {
    await backup(source, part, { rate: ALL_PAGES })
  } finally {
    if (source !== database) source.close()
  }
  renameSync(part, to)
}

/** What SQLite finds wrong when it reads all of a database; an empty list if nothing is. */
export function findDamage(database: DatabaseSync): readonly string[] {
  try {
    const rows = database.prepare('PRAGMA integrity_check').all()
    return rows.map((row) => `${row['integrity_check']}`).filter((text) => text !== 'ok')
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)]
  }
}

/**
 * Makes sure that what was deleted is in no file any more. Deleted rows are overwritten where they stood,
 * but older copies may be left: in the write-ahead log, and in pages from which rows were moved. So the
 * whole file is written anew; that takes about 10 ms per MB, and nothing else happens meanwhile.
 */
export function scrub(database: DatabaseSync, path: string): void {
  database.exec('VACUUM')
  const answer = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()
  if (answer?.['busy'] === 0) return
  throw new StoreError(
    `What was erased is still in ${path}-wal: another program reads the store.`,
    {
      code: 'STORE_LOCKED',
      hint: 'End the other program and erase again.',
    },
  )
}

/**
 * Makes an empty file that only its owner can read, and the folders above it. A file that is there is
 * not even opened: closing it would drop the locks that this process has on it.
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

/** The result code of SQLite behind an error, without its details. */
function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error && 'errcode' in error)) return undefined
  return typeof error.errcode === 'number' ? error.errcode & 0xff : undefined
}

/** What callers are told: a damaged file by its code, anything else as it is. */
export function sqliteFailure(error: unknown, path: string): unknown {
  const code = sqliteCode(error)
  if (isStoreError(error) || (code !== CORRUPT && code !== NOT_A_DATABASE)) return error
  return new StoreError(`The store ${path} is damaged or no database.`, {
    code: 'STORE_CORRUPT',
    hint: 'Keep the file for a look with the `sqlite3` command, and open a backup in its place.',
    cause: error,
  })
}
