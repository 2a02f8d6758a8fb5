import { renameSync, rmSync } from 'node:fs'
import { backup, DatabaseSync } from 'node:sqlite'
import { createPrivately } from './private-file.ts'
import { StoreError } from './store.ts'

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
