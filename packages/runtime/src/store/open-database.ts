import { DatabaseSync } from 'node:sqlite'
import { migrate } from './migrations.ts'

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
