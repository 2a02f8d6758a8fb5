import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { migrate } from './migrations.ts'

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
