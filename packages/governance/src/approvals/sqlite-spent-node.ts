import { DatabaseSync } from 'node:sqlite'
import { systemClock, type Clock } from '@skein/base'
import type { SpentStore } from '../contract/spent-store.ts'

/** The part of an open `DatabaseSync` of `node:sqlite` that is used here. */
export interface SqliteDatabase {
  exec(sql: string): void
  prepare(sql: string): {
    run(...values: (string | number)[]): { readonly changes: number | bigint }
  }
}

/** Options of `sqliteSpent`. */
export interface SqliteSpentOptions {
  /**
   * The path of a database file, or an open database. If a transaction is open in that database, `spend`
   * is part of it.
   */
  readonly database: string | SqliteDatabase
  /** The name of the table; `uaicp_spent` by default. */
  readonly table?: string
  readonly clock?: Clock
}

/** A store of spent tokens in a SQLite database. */
export interface SqliteSpentStore extends SpentStore {
  /** Deletes the tokens whose `exp` has passed and returns their number. */
  prune(): number
  /** Closes the database if the store opened it. */
  close(): void
}

/**
 * Creates a store of spent tokens as rows of a table. Because of the primary key, `spend` returns true to
 * only one caller per token, among all processes.
 */
export function sqliteSpent(options: SqliteSpentOptions): SqliteSpentStore {
  const { database, table = 'uaicp_spent', clock = systemClock } = options
  if (!/^[a-z_][a-z0-9_]*$/i.test(table)) throw new TypeError(`"${table}" is not a table name.`)
  const own = typeof database === 'string' ? openFile(database) : undefined
  const db: SqliteDatabase = own ?? (database as SqliteDatabase)
  db.exec(
    `create table if not exists ${table} (jti text primary key, exp real not null) without rowid`,
  )
  // The row with the empty id holds the latest time at which expired tokens were deleted. A token that had
  // expired by that time may have been spent and deleted, so it is refused, even if the clock was set back
  // later.
  const insert = db.prepare(
    `insert into ${table} (jti, exp) select ?1, ?2
     where not exists (select 1 from ${table} where jti = '' and exp > ?2) on conflict do nothing`,
  )
  const mark = db.prepare(
    `insert into ${table} (jti, exp) values ('', ?)
     on conflict (jti) do update set exp = max(exp, excluded.exp)`,
  )
  const remove = db.prepare(`delete from ${table} where jti != '' and exp < ?`)
  return {
    spend: async (jti, exp) => jti !== '' && Number(insert.run(jti, exp).changes) === 1,
    prune() {
      const now = clock.now()
      mark.run(now)
      return Number(remove.run(now).changes)
    },
    close: () => own?.close(),
  }
}

const BUSY_MS = 5000
const SQLITE_BUSY = 5

/**
 * Opens the file of the store. SQLite does not wait for other processes while it switches a file to the
 * write-ahead log, so when two processes open a new file at the same time, one of them has to try again.
 */
function openFile(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: BUSY_MS })
  const until = performance.now() + BUSY_MS
  for (;;)
    try {
      // With `synchronous = full` a token stays spent even if the machine crashes right after.
      database.exec('pragma journal_mode = wal; pragma synchronous = full')
      return database
    } catch (error) {
      const { errcode } = error as { readonly errcode?: number }
      if (errcode !== SQLITE_BUSY || performance.now() > until) {
        database.close()
        throw error
      }
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
    }
}
