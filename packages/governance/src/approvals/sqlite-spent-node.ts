import { DatabaseSync } from 'node:sqlite'
import { systemClock, type Clock } from '@skein/base'
import type { SpentStore } from '../contract/approval.ts'

/** An open `DatabaseSync` of `node:sqlite`, as far as it is used here. */
export interface SqliteDatabase {
  exec(sql: string): void
  prepare(sql: string): {
    run(...values: (string | number)[]): { readonly changes: number | bigint }
  }
}

/** Options of `sqliteSpent`. */
export interface SqliteSpentOptions {
  /** A file, or an open database whose transactions the spending is to be part of. */
  readonly database: string | SqliteDatabase
  /** `uaicp_spent` by default. */
  readonly table?: string
  readonly clock?: Clock
}

/** A store in a database. */
export interface SqliteSpentStore extends SpentStore {
  /** Deletes tokens that have expired on any clock; returns how many. */
  prune(): number
  /** Closes the database if the store opened it. */
  close(): void
}

/** Spent tokens as rows. The primary key makes sure that of two callers, in any process, one gets false. */
export function sqliteSpent(options: SqliteSpentOptions): SqliteSpentStore {
  const { database, table = 'uaicp_spent', clock = systemClock } = options
  if (!/^[a-z_][a-z0-9_]*$/i.test(table)) throw new TypeError(`"${table}" is not a table name.`)
  const own =
    typeof database === 'string' ? new DatabaseSync(database, { timeout: 5000 }) : undefined
  // `synchronous = full`: a token stays spent even if the machine stops right after.
  own?.exec('pragma journal_mode = wal; pragma synchronous = full')
  const db: SqliteDatabase = own ?? (database as SqliteDatabase)
  db.exec(
    `create table if not exists ${table} (jti text primary key, exp real not null) without rowid`,
  )
  const insert = db.prepare(`insert into ${table} (jti, exp) values (?, ?) on conflict do nothing`)
  const remove = db.prepare(`delete from ${table} where exp < ?`)
  return {
    spend: async (jti, exp) => Number(insert.run(jti, exp).changes) === 1,
    prune: () => Number(remove.run(clock.now()).changes),
    close: () => own?.close(),
  }
}
