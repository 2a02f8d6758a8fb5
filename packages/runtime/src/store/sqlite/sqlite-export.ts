import { rowSum } from './packed-text.ts'
import { damaged, textFrom, userValueName, type Row } from './sqlite-rows.ts'
import { headFrom } from './sqlite-head-rows.ts'
import { LOW } from './sqlite-tables.ts'
import { COUNTERS } from '../plan-commit.ts'
import type { StoreRow } from '../store.ts'

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
