import { existsSync, renameSync, rmSync } from 'node:fs'
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { packText, rowSum } from './packed-text.ts'
import { createPrivately, openDatabase } from './sqlite-file.ts'
import { sqliteFailure } from './sqlite-failure.ts'
import { damaged, userValueName } from './sqlite-rows.ts'
import { insertHead, newRow } from './sqlite-head-rows.ts'
import { fillWaitingRows } from './sqlite-waiting.ts'
import { StoreError } from '../store-error.ts'
import type { StoreRow } from '../store.ts'
import type { ThreadHead } from '../head.ts'
import { completeHead } from '../new-head.ts'

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
        const content = packText(json)
        return this.#run(sql, log, seq, content, rowSum(threadId, seq, content))
      }
      case 'audit': {
        const { tree, index, requestId, seq, line } = row
        const sql =
          'INSERT INTO audit (id, request_id, seq, line, sum) VALUES ((?1 << 32) | ?2, ?, ?, ?, ?)'
        const content = packText(line)
        const sum = rowSum(tree, index, content)
        return this.#run(sql, this.#tree(tree), index, requestId, seq, content, sum)
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
    const length = this.#trees.get(tree)
    if (length !== undefined) return length
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
