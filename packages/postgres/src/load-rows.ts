import { StoreError, completeHead, type StoreRow, type ThreadHead } from '@skein/runtime'
import type { Blobs } from './blobs.ts'
import { insertStatements } from './insert-statements.ts'
import type { SendStatements, Statement, Value } from './connections.ts'
import type { Parts } from './copy.ts'
import { storeFailure } from './errors.ts'
import { headStatements } from './head-rows.ts'
import { totalsStatement } from './totals.ts'
import { fillWaitingTable } from './waiting.ts'

/** Fills a store that has no threads, in one transaction: after an error, nothing is written. */
export async function loadRows(
  { s, connections, blobs }: Parts,
  rows: AsyncIterable<StoreRow> | Iterable<StoreRow>,
): Promise<void> {
  try {
    await connections.once(async (run) => {
      const [, , [facts] = []] = await run([
        { text: 'BEGIN' },
        { text: `LOCK TABLE ${s}.threads IN EXCLUSIVE MODE` },
        {
          text: `SELECT last_value AS last, EXISTS (SELECT 1 FROM ${s}.threads)
            OR EXISTS (SELECT 1 FROM ${s}.user_values) OR EXISTS (SELECT 1 FROM ${s}.audit)
            OR EXISTS (SELECT 1 FROM ${s}.spent) AS is_used FROM ${s}.log_ids`,
        },
      ])
      if (facts?.['is_used'])
        throw new StoreError('The store in this database is not empty.', {
          code: 'STATE_CONFLICT',
          hint: 'Name an empty database; a store is never overwritten.',
        })
      const loader = new Loader(s, { run, blobs, lastLog: Number(facts?.['last']) })
      for await (const row of rows) await loader.add(row)
      await loader.finish()
      await run([{ text: 'COMMIT' }])
    })
  } catch (error) {
    throw storeFailure(error)
  }
}

/** For each type of row: its table, its columns, and the ON CONFLICT clause for rows that exist already. */
const TABLES = {
  event: ['events', ['log_id', 'seq', 'json'], ''],
  audit: ['audit', ['tree_key', 'number', 'request_id', 'seq', 'line'], ''],
  blob_name: ['blob_names', ['thread_id', 'hash'], ''],
  spent: ['spent', ['jti', 'exp'], ''],
  counter: [
    'counters',
    ['name', 'value'],
    'ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  ],
  user_value: ['user_values', ['tenant', 'user_id', 'key', 'json', 'version', 'updated_at'], ''],
  setting: ['settings', ['name', 'json'], 'ON CONFLICT (name) DO UPDATE SET json = excluded.json'],
} as const satisfies Partial<Record<StoreRow['type'], readonly [string, readonly string[], string]>>

const MOST_ROWS = 500

const MOST_CHARS = 4_000_000

/** Writes rows in batches. */
class Loader {
  readonly #s: string
  readonly #run: SendStatements
  readonly #blobs: Blobs
  readonly #logs = new Map<string, number>()
  readonly #trees = new Map<string, { readonly key: number; length: number }>()
  readonly #waiting = new Map<keyof typeof TABLES, Value[][]>()
  #heads: ThreadHead[] = []
  #count = 0
  #chars = 0
  #lastLog: number

  constructor(
    s: string,
    parts: { readonly run: SendStatements; readonly blobs: Blobs; readonly lastLog: number },
  ) {
    this.#s = s
    this.#run = parts.run
    this.#blobs = parts.blobs
    this.#lastLog = parts.lastLog
  }

  async add(row: StoreRow): Promise<void> {
    switch (row.type) {
      case 'thread': {
        const logId = ++this.#lastLog
        this.#logs.set(row.head.id, logId)
        this.#heads.push({ ...completeHead(row.head), logId, lease: null })
        return this.#counted(1000)
      }
      case 'blob': {
        const { hash, bytes } = row
        await this.#blobs.putOutside([{ hash, bytes }])
        return this.#blobs.putInside(this.#run, [{ hash, bytes }])
      }
      case 'event':
        return this.#put(row.type, [this.#logOf(row.threadId), row.seq, row.json])
      case 'audit': {
        const tree = await this.#treeOf(row.tree)
        tree.length = Math.max(tree.length, row.index + 1)
        return this.#put(row.type, [tree.key, row.index, row.requestId, row.seq, row.line])
      }
      case 'blob_name':
        return this.#put(row.type, [row.threadId, row.hash])
      case 'spent':
        return this.#put(row.type, [row.jti, row.exp])
      case 'counter':
        if (row.name !== 'user_version') return this.#put(row.type, [row.name, row.value])
        if (row.value > 0)
          await this.#run([
            { text: `SELECT setval('${this.#s}.user_versions', ${Math.trunc(row.value)})` },
          ])
        return undefined
      case 'user_value': {
        const { tenant, user, key, json, version, updatedAt } = row
        return this.#put(row.type, [tenant, user, key, json, version, updatedAt])
      }
      case 'setting':
        return this.#put(row.type, [row.name, row.json])
    }
  }

  /** Writes the remaining rows, and sets the counters to go on after the numbers in the rows. */
  async finish(): Promise<void> {
    await this.#flush()
    for (const [tree, { length }] of this.#trees)
      await this.#run([
        {
          text: `UPDATE ${this.#s}.audit_trees SET length = $2 WHERE tree = $1`,
          values: [tree, length],
        },
      ])
    await fillWaitingTable(this.#run, this.#s)
    if (this.#logs.size > 0)
      await this.#run([{ text: `SELECT setval('${this.#s}.log_ids', ${this.#lastLog})` }])
  }

  #logOf(threadId: string): number {
    const log = this.#logs.get(threadId)
    if (log !== undefined) return log
    throw new StoreError(`The head of thread ${threadId} is missing.`, { code: 'STORE_CORRUPT' })
  }

  async #treeOf(tree: string): Promise<{ readonly key: number; length: number }> {
    const previous = this.#trees.get(tree)
    if (previous) return previous
    const text = `INSERT INTO ${this.#s}.audit_trees (tree) VALUES ($1) RETURNING key`
    const [[row]] = await this.#run([{ text, values: [tree] }])
    const entry = { key: Number(row?.['key']), length: 0 }
    this.#trees.set(tree, entry)
    return entry
  }

  #put(type: keyof typeof TABLES, values: Value[]): Promise<void> {
    const rows = this.#waiting.get(type) ?? []
    this.#waiting.set(type, rows)
    rows.push(values)
    return this.#counted(
      values.reduce<number>((sum, one) => sum + (typeof one === 'string' ? one.length : 8), 0),
    )
  }

  async #counted(chars: number): Promise<void> {
    this.#count++
    this.#chars += chars
    if (this.#count >= MOST_ROWS || this.#chars >= MOST_CHARS) await this.#flush()
  }

  async #flush(): Promise<void> {
    const s = this.#s
    const heads = this.#heads.map((head) => ({ head, before: undefined }))
    const totals = totalsStatement(s, heads)
    const statements: Statement[] = [...headStatements(s, heads), ...(totals ? [totals] : [])]
    for (const [type, rows] of this.#waiting) {
      const [table, columns, conflict] = TABLES[type]
      statements.push(...insertStatements(`${s}.${table}`, columns, rows, conflict))
    }
    this.#heads = []
    this.#waiting.clear()
    this.#count = this.#chars = 0
    if (statements.length > 0) await this.#run(statements)
  }
}
