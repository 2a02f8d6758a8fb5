import { completeHead, StoreError, type StoreRow, type ThreadHead } from '@skein/runtime'
import type { Blobs } from './blobs.ts'
import {
  type Connections,
  type DatabaseRow,
  insertStatements,
  type SendStatements,
  type Statement,
  type Value,
} from './connections.ts'
import { storeFailure } from './errors.ts'
import { HEAD_COLUMNS, headFromRow, headStatements } from './head-rows.ts'
import { totalsStatement } from './totals.ts'
import { fillWaitingTable } from './waiting.ts'

/** The parts of a store that copies need. */
interface Parts {
  readonly s: string
  readonly connections: Connections
  readonly blobs: Blobs
}

const PAGE = 500
/** Settings whose names begin with a space are about this database, not about the store; copies leave them out. */
const OWN_SETTING = ' '

/**
 * Yields everything in the store. All rows are read in one transaction, so they are from the same
 * moment, although other nodes go on writing.
 */
export async function* databaseRows({
  s,
  connections,
  blobs,
}: Parts): AsyncGenerator<StoreRow, void, undefined> {
  let leave = (): void => undefined
  const end = new Promise<void>((resolve) => (leave = resolve))
  let holding: Promise<void> | undefined
  try {
    const run = await new Promise<SendStatements>((resolve, reject) => {
      // This reader keeps the connection until it has read everything or is abandoned.
      holding = connections
        .once(async (run) => {
          await run([{ text: 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY' }])
          resolve(run)
          await end
          await run([{ text: 'ROLLBACK' }])
        })
        .catch(reject)
    })
    const heads = pages(run, `SELECT ${HEAD_COLUMNS} FROM ${s}.threads ORDER BY id`)
    for await (const row of heads) {
      const { logId: _, lease: __, ...head } = headFromRow(row)
      yield { type: 'thread', head }
    }
    const events = `SELECT t.id AS "threadId", e.seq, e.json FROM ${s}.events e
      JOIN ${s}.threads t ON t.log_id = e.log_id ORDER BY e.log_id, e.seq`
    yield* rowsOf('event', run, events)
    const lines = `SELECT tree, number AS "index", request_id AS "requestId", seq, line FROM ${s}.audit
      JOIN ${s}.audit_trees ON key = tree_key ORDER BY tree_key, number`
    yield* rowsOf('audit', run, lines)
    const contents = pages(run, `SELECT hash FROM ${s}.blobs WHERE is_stored ORDER BY hash`)
    for await (const row of contents) {
      const hash = row['hash'] as string
      const text = `SELECT bytes FROM ${s}.blob_chunks WHERE hash = $1 ORDER BY number`
      const [chunks] = await run([{ text, values: [hash] }])
      const inside = Buffer.concat(chunks.map((chunk) => chunk['bytes'] as Uint8Array))
      const bytes = chunks.length > 0 ? inside : await blobs.read(hash)
      if (!bytes)
        throw new StoreError(`The content ${hash} is missing.`, {
          code: 'STORE_CORRUPT',
          hint: 'Look for it in a backup of the store of contents.',
        })
      yield { type: 'blob', hash, bytes }
    }
    const names = `SELECT thread_id AS "threadId", hash FROM ${s}.blob_names`
    yield* rowsOf('blob_name', run, names)
    yield* rowsOf('spent', run, `SELECT jti, exp FROM ${s}.spent`)
    const counters = `SELECT name, value FROM ${s}.counters UNION ALL
      SELECT 'user_version', CASE WHEN is_called THEN last_value ELSE 0 END FROM ${s}.user_versions`
    yield* rowsOf('counter', run, counters)
    const values = `SELECT tenant, user_id AS "user", key, json, version, updated_at AS "updatedAt"
      FROM ${s}.user_values`
    yield* rowsOf('user_value', run, values)
    const settings = `SELECT name, json FROM ${s}.settings WHERE NOT starts_with(name, '${OWN_SETTING}')`
    yield* rowsOf('setting', run, settings)
  } catch (error) {
    throw storeFailure(error)
  } finally {
    leave()
    await holding
  }
}

/** Yields rows of one type. The columns of the statement have the names of that type's fields. */
async function* rowsOf(
  type: StoreRow['type'],
  run: SendStatements,
  text: string,
): AsyncGenerator<StoreRow, void, undefined> {
  for await (const row of pages(run, text)) yield { type, ...row } as StoreRow // the schema has these types
}

/** Reads a statement page by page through a cursor, so that a large table does not have to fit in memory. */
async function* pages(
  run: SendStatements,
  text: string,
): AsyncGenerator<DatabaseRow, void, undefined> {
  await run([{ text: `DECLARE page NO SCROLL CURSOR FOR ${text}` }])
  for (;;) {
    const [rows] = await run([{ text: `FETCH ${PAGE} FROM page` }])
    yield* rows
    if (rows.length < PAGE) break
  }
  await run([{ text: 'CLOSE page' }])
}

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
