import { existsSync } from 'node:fs'
import { hash } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import { messageOf } from '@skein/base'
import { checkStoreVersion } from './migrations.ts'
import { rowSum } from './packed-text.ts'
import { COUNTERS } from '../plan-commit.ts'
import { sqliteRows, type SqliteReader } from './sqlite-export.ts'
import { sqliteFailure } from './sqlite-failure.ts'
import { damaged, textFrom, userValueFrom, type Row } from './sqlite-rows.ts'
import { headFrom } from './sqlite-head-rows.ts'
import { LOW, SqliteTables } from './sqlite-tables.ts'
import { removalsOf, type Store, type StoreRow } from '../store.ts'
import { StoreError } from '../store-error.ts'
import type { ThreadHead } from '../head.ts'
import { searchText } from '../select-threads.ts'

/** Options of functions that read a whole store file. */
export interface ReadOptions {
  /** Is called with each row: how many bytes were read so far, and about how many there are. */
  readonly onRead?: (bytes: number, totalBytes: number) => void
}

/** The result of reading a whole store. */
export interface StoreReport {
  /** One sentence for each row that differs from what was written; empty if the store is undamaged. */
  readonly problems: readonly string[]
  readonly threads: number
  readonly events: number
  readonly auditLines: number
  readonly blobs: number
}

/**
 * Reads everything in a store file (events, summaries of threads, audit lines, blobs, settings, counters) and
 * checks it against its checksums and hashes. The file is only read, so a running owner is not disturbed.
 */
export function verifyStore(path: string, { onRead }: ReadOptions = {}): StoreReport {
  const database = openToRead(path)
  try {
    return verifyDatabase(onRead ? countBytes(database, onRead) : database)
  } catch (error) {
    throw sqliteFailure(error, path)
  } finally {
    database.close()
  }
}

/**
 * Opens a store file to read it as it is now. Nothing is written and no lease is ended, so a running owner
 * is not disturbed. Close it soon: as long as it is open, SQLite keeps the old state, and the file grows.
 */
export function readSqliteStore(
  path: string,
  { onRead }: ReadOptions = {},
): Pick<Store, 'head' | 'list' | 'events' | 'blob' | 'close'> & {
  /** Yields everything that was in the store when it was opened, for a copy or a backup. */
  rows(): Iterable<StoreRow>
} {
  const database = openToRead(path)
  const tables = new SqliteTables(database)
  const read = async <T>(work: () => T): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      throw sqliteFailure(error, path)
    }
  }
  return {
    head: (threadId) => read(() => tables.head(threadId)),
    blob: (hash) => read(() => tables.blob(hash)),
    list: (query) => read(() => wholeList(tables.list(query))),
    events: (threadId, { after = 0, limit = Infinity } = {}) =>
      read(() => tables.events(threadId, after, limit)),
    *rows() {
      try {
        yield* sqliteRows(onRead ? countBytes(database, onRead) : database)
      } catch (error) {
        throw sqliteFailure(error, path)
      }
    },
    close: () => read(() => database.close()),
  }
}

/** Reads a list to its end without pauses: no other work shares the process with this reader. */
function wholeList(list: Generator<void, readonly ThreadHead[], undefined>): readonly ThreadHead[] {
  for (;;) {
    const step = list.next()
    if (step.done) return step.value
  }
}

/** Opens a file and begins a transaction, so that everything that is read belongs to one moment. */
function openToRead(path: string): DatabaseSync {
  if (!existsSync(path))
    throw new StoreError(`There is no store ${path}.`, {
      code: 'STORE_CORRUPT',
      hint: 'Name the folder that holds skein.db.',
    })
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path, { readOnly: true })
    checkStoreVersion(database, path)
    database.exec('BEGIN')
    return database
  } catch (error) {
    database?.close()
    throw sqliteFailure(error, path)
  }
}

const EVENTS = `SELECT id >> 32 AS log, id & ${LOW} AS seq, json, sum FROM events ORDER BY id`
const AUDIT = `SELECT tree, id & ${LOW} AS idx, line, sum
  FROM audit LEFT JOIN audit_trees ON key = id >> 32 ORDER BY id`

/** The largest number of problems that a report lists. */
const MAX_PROBLEMS = 100

/** Returns the same database, which reports what is read from it. */
function countBytes(
  database: DatabaseSync,
  onRead: NonNullable<ReadOptions['onRead']>,
): SqliteReader {
  const pragma = (name: string): number =>
    Number(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0])
  const total = (pragma('page_count') - pragma('freelist_count')) * pragma('page_size')
  let bytes = 0
  return {
    prepare: (sql) => ({
      *iterate() {
        onRead(bytes, total)
        for (const row of database.prepare(sql).iterate()) {
          for (const value of Object.values(row)) bytes += bytesOf(value)
          onRead(bytes, total)
          yield row
        }
      },
    }),
  }
}

/** About how much of the file a value takes. */
function bytesOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  return value instanceof Uint8Array ? value.length : 4
}

/** Checks an open database as `verifyStore` does. */
export function verifyDatabase(database: SqliteReader): StoreReport {
  const count = { threads: 0, events: 0, auditLines: 0, blobs: 0 }
  const { problems, expect, read } = checksOf(database)
  read('The file', `PRAGMA integrity_check(${MAX_PROBLEMS})`, (row) => {
    const text = String(row['integrity_check'])
    expect(text === 'ok', () => `The file is damaged: ${text}.`)
  })
  read('The file', 'PRAGMA foreign_key_check', (row) =>
    expect(false, () => `A row of ${String(row['table'])} belongs to no thread.`),
  )

  const heads = new Map<string, ThreadHead>()
  const logs = new Map<number, string>()
  const sums = new Map<string, number>([
    ['tokens', 0],
    ['cost_usd', 0],
  ])
  const add = (name: string, value: number): void =>
    void sums.set(name, (sums.get(name) ?? 0) + value)
  read('The list of threads', 'SELECT * FROM threads', (row) => {
    count.threads++
    logs.set(Number(row['log_id']), String(row['id']))
    add(`threads ${String(row['lifecycle'])}`, 1)
    add('tokens', Number(row['tokens']))
    add('cost_usd', Number(row['cost_usd']))
    const what = `The head of thread ${String(row['id'])}`
    try {
      const head = headFrom(row)
      heads.set(head.id, head)
      // The search text repeats every label (title, tags ...), so damage to one of the two is noticed.
      expect(row['search'] === searchText(head), () => `${what} is damaged: its labels differ.`)
    } catch (error) {
      expect(false, () => messageOf(error))
    }
  })

  const last = new Map<string, number>()
  read('The events', EVENTS, (row) => {
    count.events++
    const threadId = logs.get(Number(row['log']))
    if (threadId === undefined) return expect(false, () => 'A row of events belongs to no thread.')
    const seq = Number(row['seq'])
    const before = last.get(threadId) ?? 0
    last.set(threadId, seq)
    expect(seq === before + 1, () => `Event ${before + 1} of thread ${threadId} is missing.`)
    const isWhole = textFrom(threadId, seq, row['json'], row['sum']) !== undefined
    expect(isWhole, () => messageOf(damaged(`Event ${seq} of thread ${threadId}`)))
  })
  for (const { id, seq } of heads.values()) {
    const lastSeq = last.get(id) ?? 0
    expect(lastSeq === seq, () => `Thread ${id} has ${lastSeq} events, but its head says ${seq}.`)
  }

  const lines = new Map<string, number>()
  read('The audit logs', AUDIT, (row) => {
    count.auditLines++
    const tree = String(row['tree'])
    const index = Number(row['idx'])
    const next = lines.get(tree) ?? 0
    lines.set(tree, index + 1)
    expect(index === next, () => `Line ${next} of the audit log of thread ${tree} is missing.`)
    const isRight = textFrom(tree, index, row['line'], row['sum']) !== undefined
    expect(isRight, () => messageOf(damaged(`Line ${index} of the audit log of thread ${tree}`)))
  })

  read('The contents', 'SELECT hash, bytes, sum FROM blobs', (row) => {
    count.blobs++
    const name = String(row['hash'])
    const isRight = isContent(name, row['bytes'], row['sum'])
    expect(isRight, () => `The content ${name} is damaged: it has another hash.`)
  })

  checkValues({ expect, read })
  read('The counters', 'SELECT name, value FROM counters', (row) => {
    const name = String(row['name'])
    // Counters that commits change (spending, refusals) cannot be checked, because no other row repeats their values.
    if (name === 'log_id' || name === 'user_version' || name.startsWith(COUNTERS)) return
    if (name === 'change' || name.startsWith(removalsOf(''))) return
    // Costs are sums of fractions, and their last digits depend on the order of the additions.
    const isRight = Math.abs((sums.get(name) ?? 0) - Number(row['value'])) < 1e-6
    expect(isRight, () => `The counter "${name}" is wrong.`)
    sums.delete(name)
  })
  for (const [name, sum] of sums) expect(sum === 0, () => `The counter "${name}" is missing.`)
  return { problems, ...count }
}

interface Checks {
  readonly problems: string[]
  expect(isRight: boolean, problem: () => string): void
  /**
   * Runs one check on the rows of a query. If a page is damaged, SQLite's error ends this check, and
   * the others still run.
   */
  read(what: string, sql: string, check: (row: Row) => void): void
}

function checksOf(database: SqliteReader): Checks {
  const problems: string[] = []
  const expect = (isRight: boolean, problem: () => string): void => {
    if (!isRight && problems.length < MAX_PROBLEMS) problems.push(problem())
  }
  const read = (what: string, sql: string, check: (row: Row) => void): void => {
    try {
      for (const row of database.prepare(sql).iterate()) check(row as Row)
    } catch (error) {
      expect(false, () => `${what} cannot be read: ${messageOf(error)}.`)
    }
  }
  return { problems, expect, read }
}

/** Checks the values of users and the settings. */
function checkValues({ expect, read }: Pick<Checks, 'expect' | 'read'>): void {
  read('The values of users', 'SELECT * FROM user_values', (row) => {
    try {
      userValueFrom(row)
    } catch (error) {
      expect(false, () => messageOf(error))
    }
  })
  read('The settings', 'SELECT name, json FROM settings', (row) => {
    const setting = `The setting ${String(row['name'])}`
    expect(isJson(String(row['json'])), () => `${setting} is damaged: it is not JSON.`)
  })
}

/** Whether the bytes have the checksum of their row and the hash that is their name. */
function isContent(name: string, bytes: unknown, sum: unknown): boolean {
  if (!(bytes instanceof Uint8Array)) return false
  return rowSum(name, 0, bytes) === sum && hash('sha256', bytes) === name
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
