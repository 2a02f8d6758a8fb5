import { existsSync, renameSync, rmSync } from 'node:fs'
import { backup, DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { COUNTERS } from '../plan-commit.ts'
import { createPrivately, openDatabase, sqliteFailure } from './sqlite-file.ts'
import { packText, rowSum } from './packed-text.ts'
import {
  damaged,
  headFrom,
  insertHead,
  newRow,
  type Row,
  userValueName,
  textFrom,
} from './sqlite-rows.ts'
import { LOW } from './sqlite-tables.ts'
import { fillWaitingRows } from './sqlite-waiting.ts'
import { StoreError, type StoreRow, type ThreadHead } from '../store.ts'
import { completeHead } from '../thread-head.ts'

/** Settings whose names begin with a space are about the file, not about the store; `sqliteRows` leaves them out. */
const OWN_SETTING = ' '
const USER_VERSION = 'user_version'

/** The methods of a `DatabaseSync` of `node:sqlite` with which a whole store is read. */
export interface SqliteReader {
  prepare(sql: string): { iterate(): Iterable<unknown> }
}

/**
 * Yields everything in an open database, threads first. The caller has begun a transaction, so that all rows are from
 * the same moment. Every row is checked against its checksum; the first damaged row ends the reading with an error.
 */
export function* sqliteRows(database: SqliteReader): Generator<StoreRow, void, undefined> {
  const all = (sql: string): Iterable<Row> => database.prepare(sql).iterate() as Iterable<Row>
  for (const row of all('SELECT * FROM threads ORDER BY id')) {
    const { logId: _, lease: __, ...head } = headFrom(row)
    yield { type: 'thread', head }
  }
  for (const row of all(`SELECT threads.id AS thread, events.id & ${LOW} AS number, json, sum
    FROM events JOIN threads ON log_id = events.id >> 32 ORDER BY events.id`)) {
    const [threadId, seq] = [row['thread'] as string, Number(row['number'])]
    const json = textFrom(threadId, seq, row['json'], row['sum'])
    if (json === undefined) throw damaged(`Event ${seq} of thread ${threadId}`)
    yield { type: 'event', threadId, seq, json }
  }
  for (const row of all(`SELECT tree, audit.id & ${LOW} AS number, request_id, seq, line, sum
    FROM audit JOIN audit_trees ON key = audit.id >> 32 ORDER BY audit.id`)) {
    const [tree, index] = [row['tree'] as string, Number(row['number'])]
    const line = textFrom(tree, index, row['line'], row['sum'])
    if (line === undefined) throw damaged(`Line ${index} of the audit log of thread ${tree}`)
    const requestId = row['request_id'] as string
    yield { type: 'audit', tree, index, requestId, seq: Number(row['seq']), line }
  }
  for (const row of all('SELECT hash, bytes, sum FROM blobs ORDER BY hash')) {
    const [hash, bytes] = [row['hash'] as string, row['bytes']]
    if (!(bytes instanceof Uint8Array) || rowSum(hash, 0, bytes) !== row['sum'])
      throw damaged(`The content ${hash}`)
    yield { type: 'blob', hash, bytes }
  }
  for (const row of all('SELECT thread_id, hash FROM blob_names'))
    yield {
      type: 'blob_name',
      threadId: row['thread_id'] as string,
      hash: row['hash'] as string,
    }
  yield* smallRows(all)
}

function* smallRows(all: (sql: string) => Iterable<Row>): Generator<StoreRow, void, undefined> {
  for (const row of all('SELECT jti, exp FROM spent'))
    yield { type: 'spent', jti: row['jti'] as string, exp: Number(row['exp']) }
  for (const row of all('SELECT name, value FROM counters')) {
    const name = row['name'] as string
    if (name.startsWith(COUNTERS) || name === USER_VERSION)
      yield { type: 'counter', name, value: Number(row['value']) }
  }
  for (const row of all('SELECT * FROM user_values')) {
    const [tenant, user, key] = [row['tenant'], row['user'], row['key']].map(String)
    const of = { tenant: tenant!, user: user!, key: key! }
    const [json, version] = [String(row['json']), Number(row['version'])]
    if (rowSum(userValueName(of.tenant, of.user, of.key), version, json) !== row['sum'])
      throw damaged(`The value "${key}" of the user ${user} of ${tenant}`)
    yield { type: 'user_value', ...of, json, version, updatedAt: row['updated_at'] as string }
  }
  for (const row of all('SELECT name, json FROM settings')) {
    const name = row['name'] as string
    if (!name.startsWith(OWN_SETTING)) yield { type: 'setting', name, json: row['json'] as string }
  }
}

/**
 * Creates a store file from the rows of another store. If the rows end with an error, no file is created.
 * The rows of a thread have to come after the row of the thread itself. Throws if the file exists already.
 */
export async function loadSqliteStore(
  path: string,
  rows: AsyncIterable<StoreRow> | Iterable<StoreRow>,
): Promise<void> {
  if (existsSync(path))
    throw new StoreError(`The store ${path} exists already.`, {
      code: 'STATE_CONFLICT',
      hint: 'Name a file that does not exist; a store is never overwritten.',
    })
  const part = `${path}.part`
  const drop = (): void => {
    for (const end of ['', '-wal', '-shm']) rmSync(`${part}${end}`, { force: true })
  }
  drop()
  try {
    createPrivately(part)
    const database = openDatabase({ path: part })
    try {
      database.exec('BEGIN IMMEDIATE')
      const writer = new RowWriter(database)
      for await (const row of rows) writer.write(row)
      writer.finish()
      database.exec('COMMIT')
      // Only this one file is renamed below, so the write-ahead log, a separate file, must be empty by then.
      database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    } finally {
      database.close()
    }
    renameSync(part, path)
  } catch (error) {
    drop()
    throw sqliteFailure(error, path)
  }
}

class RowWriter {
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()
  readonly #logs = new Map<string, number>()
  #lastChange = 0
  readonly #trees = new Map<string, number>()
  readonly #sums = new Map<string, number>()

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  write(row: StoreRow): void {
    switch (row.type) {
      case 'thread':
        return this.#thread(row.head)
      case 'event': {
        const { threadId, seq, json } = row
        const log = this.#logs.get(threadId)
        if (log === undefined) throw damaged(`The thread ${threadId}`, 'its head is missing')
        const sql = 'INSERT INTO events (id, json, sum) VALUES ((?1 << 32) | ?2, ?3, ?4)'
        const packed = packText(json)
        return this.#run(sql, log, seq, packed, rowSum(threadId, seq, packed))
      }
      case 'audit': {
        const { tree, index, requestId, seq, line } = row
        const sql =
          'INSERT INTO audit (id, request_id, seq, line, sum) VALUES ((?1 << 32) | ?2, ?, ?, ?, ?)'
        const packed = packText(line)
        const sum = rowSum(tree, index, packed)
        return this.#run(sql, this.#tree(tree), index, requestId, seq, packed, sum)
      }
      case 'blob': {
        const { hash, bytes } = row
        const sql = 'INSERT INTO blobs (hash, bytes, sum) VALUES (?, ?, ?)'
        return this.#run(sql, hash, bytes, rowSum(hash, 0, bytes))
      }
      case 'blob_name':
        return this.#run(
          'INSERT INTO blob_names (thread_id, hash) VALUES (?, ?)',
          row.threadId,
          row.hash,
        )
      case 'spent':
        return this.#run('INSERT INTO spent (jti, exp) VALUES (?, ?)', row.jti, row.exp)
      case 'counter':
        return this.#counter(row.name, row.value)
      case 'user_value': {
        const { tenant, user, key, json, version, updatedAt } = row
        const sum = rowSum(userValueName(tenant, user, key), version, json)
        const sql = `INSERT INTO user_values (tenant, user, key, json, version, updated_at, sum)
          VALUES (?, ?, ?, ?, ?, ?, ?)`
        return this.#run(sql, tenant, user, key, json, version, updatedAt, sum)
      }
      case 'setting':
        return this.#run('INSERT INTO settings (name, json) VALUES (?, ?)', row.name, row.json)
    }
  }

  /** Writes what a store keeps with each commit and never computes from all threads: counters, and open questions. */
  finish(): void {
    this.#counter('log_id', this.#logs.size)
    this.#counter('change', this.#lastChange)
    for (const [name, value] of this.#sums) this.#counter(name, value)
    fillWaitingRows(this.#database)
  }

  #thread(head: Extract<StoreRow, { type: 'thread' }>['head']): void {
    const logId = this.#logs.size + 1
    this.#logs.set(head.id, logId)
    const whole: ThreadHead = { ...completeHead(head), logId, lease: null }
    this.#lastChange = Math.max(this.#lastChange, whole.change)
    this.#run(insertHead, ...newRow(whole))
    const add = (name: string, value: number): void =>
      void this.#sums.set(name, (this.#sums.get(name) ?? 0) + value)
    add(`threads ${whole.lifecycle}`, 1)
    add('tokens', whole.tokens)
    add('cost_usd', whole.costUsd)
  }

  #tree(tree: string): number {
    const known = this.#trees.get(tree)
    if (known !== undefined) return known
    this.#run('INSERT INTO audit_trees (key, tree) VALUES (?, ?)', this.#trees.size + 1, tree)
    this.#trees.set(tree, this.#trees.size + 1)
    return this.#trees.size
  }

  #counter(name: string, value: number): void {
    this.#run('REPLACE INTO counters (name, value) VALUES (?, ?)', name, value)
  }

  #run(sql: string, ...values: SQLInputValue[]): void {
    let statement = this.#statements.get(sql)
    if (!statement) this.#statements.set(sql, (statement = this.#database.prepare(sql)))
    statement.run(...values)
  }
}

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
  // SQLite copies on another thread, over a connection of its own, while this thread goes on using `database`.
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
