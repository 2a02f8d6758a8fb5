import { StoreError, type StoreRow } from '@skein/runtime'
import type { Blobs } from './blobs.ts'
import type { Connections, DatabaseRow, SendStatements } from './connections.ts'
import { storeFailure } from './errors.ts'
import { HEAD_COLUMNS, headFromRow } from './head-rows.ts'

/** The parts of a store that copies need. */
export interface Parts {
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
