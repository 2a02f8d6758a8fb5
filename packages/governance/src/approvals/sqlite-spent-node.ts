import { DatabaseSync } from 'node:sqlite'
import { systemClock, type Clock } from '@skein/base'
import type { SpentStore } from '../approval.ts'

/** Options of `sqliteSpent`. */
export interface SqliteSpentOptions {
  /** A file, or an open database whose transactions the spending is to be part of. */
  readonly database: string | DatabaseSync
  /** `uaicp_spent` by default. */
  readonly table?: string
  readonly clock?: Clock
}

/** A store in a database. */
export interface SqliteSpentStore extends SpentStore {
  /** Removes tokens that no clock would take any more; returns how many. */
  prune(): number
  /** Closes the database if the store opened it. */
  close(): void
}

/** Spent tokens as rows; the primary key makes the second of two callers lose, in any process. */
export function sqliteSpent(options: SqliteSpentOptions): SqliteSpentStore {
  const { database, table = 'uaicp_spent', clock = systemClock } = options
  if (!/^[a-z_][a-z0-9_]*$/i.test(table)) throw new TypeError(`"${table}" is not a table name.`)
  const db = typeof database === 'string' ? openDatabase(database) : database
  db.exec(
    `create table if not exists ${table} (jti text primary key, exp real not null) without rowid`,
  )
  const insert = db.prepare(`insert into ${table} (jti, exp) values (?, ?) on conflict do nothing`)
  const remove = db.prepare(`delete from ${table} where exp < ?`)
  return {
    spend: async (jti, exp) => Number(insert.run(jti, exp).changes) === 1,
    prune: () => Number(remove.run(clock.now()).changes),
    close() {
      if (typeof database === 'string') db.close()
    },
  }
}

/** `synchronous = full`: a token stays spent when the machine stops right after. */
function openDatabase(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: 5000 })
  db.exec('pragma journal_mode = wal; pragma synchronous = full')
  return db
}
