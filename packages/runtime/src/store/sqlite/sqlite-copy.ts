import { renameSync, rmSync } from 'node:fs'
import { DatabaseSync, backup } from 'node:sqlite'
import { createPrivately } from './sqlite-file.ts'
import { StoreError } from '../store-error.ts'

/**
 * The number of pages that are copied in one step: all, because a copy in several steps would start
 * again after every commit in between.
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
  // SQLite copies on another thread, over a connection of its own, while this thread continues to use `database`.
  const source = path === ':memory:' ? database : new DatabaseSync(path)
  try {
    await backup(source, part, { rate: ALL_PAGES })
  } finally {
    if (source !== database) source.close()
  }
  renameSync(part, to)
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
