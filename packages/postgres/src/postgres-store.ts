import { randomUUID } from 'node:crypto'
import { encodeBase64 } from '@skein/base'
import {
  type Claim,
  type ClaimOptions,
  type Commit,
  type CommitResult,
  type HeldThread,
  isStorable,
  pageOf,
  planErase,
  removalsOf,
  type RuntimeEvent,
  type Store,
  storedText,
  StoreError,
  type StoredEvent,
  type StoreRow,
  type StoreTotals,
  type ThreadHead,
  type ThreadQuery,
  waitingLimit,
  type WaitingQuery,
  type WaitingRow,
} from '@skein/runtime'
import { Blobs, type BlobStore } from './blobs.ts'
import { Commits } from './commits.ts'
import { Connections, type ConnectionOptions, type DatabaseRow } from './connections.ts'
import { insertStatements } from './insert-statements.ts'
import { quoted } from './quoted.ts'
import { databaseRows } from './copy.ts'
import { loadRows } from './load-rows.ts'
import { LongReads } from './long-reads.ts'
import { HEAD_COLUMNS, headFromRow, headStatements } from './head-rows.ts'
import { COUNTED_LIFECYCLES, totalsStatement } from './totals.ts'
import { threadListing } from './thread-listing.ts'
import { changeNumber, CHANGES, migrateSchema } from './schema.ts'
import { lockUsers } from './lock-users.ts'
import { waitingListing, waitingRowFrom } from './waiting.ts'

type UserOf = Parameters<Store['userValues']>[0]
type UserValue = Awaited<ReturnType<Store['userValues']>>[number]
type Setting = Parameters<Store['setSetting']>[1]
type TreeUsage = Awaited<ReturnType<Store['treeUsage']>>

/** Options of `postgresStore`. Give either `connectionString` or `pool`. */
export interface PostgresStoreOptions extends ConnectionOptions {
  /** The schema of the tables, which is created if missing. Default `skein`. */
  readonly schema?: string
  /** Where blobs are stored. Default: in the database, in rows of 1 MiB. */
  readonly blobs?: BlobStore
  /** How many transactions of commits run concurrently; more commits than that share transactions. Default 4. */
  readonly lanes?: number
}

/** Threads in a PostgreSQL database that any number of nodes share. */
export interface PostgresStore extends Store {
  /** Deletes blobs outside of the database to which no commit refers; runs by itself every ten minutes. */
  sweepBlobs(options?: { readonly keepMs?: number }): Promise<number>
  /** How many round trips, and how many transactions of commits, there were since the store was opened. */
  counts(): { readonly roundTrips: number; readonly transactions: number }
  /** Yields everything in the store, as it was at one moment, for a copy or a backup. */
  rows(): AsyncIterable<StoreRow>
  /** Fills a store that has no threads with the rows of another store. If it fails, nothing is written. */
  load(rows: AsyncIterable<StoreRow> | Iterable<StoreRow>): Promise<void>
  /** Reads the clock of the database, in ms since 1970. */
  now(): Promise<number>
}

const SWEEP_MS = 600_000

/** Opens a store. First creates or updates its tables; nodes that start at the same time wait for one another. */
export async function postgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const { schema = 'skein', lanes = 4, blobs: outside } = options
  if ((options.connectionString === undefined) === (options.pool === undefined))
    throw new StoreError('Give either `connectionString` or `pool`.', {
      code: 'TEXT_INVALID',
      hint: 'A pool of your own stays open when the store is closed.',
    })
  const s = quoted(schema)
  const connections = new Connections(options)
  try {
    await migrateSchema(connections, schema)
    // Removes the lanes of nodes that died: a living node uses its lanes with every commit, and no node uses old ones.
    await connections.query(
      `DELETE FROM ${s}.lanes WHERE used_at < clock_timestamp() - interval '7 days'`,
    )
    await raiseChanges(connections, s)
  } catch (error) {
    await connections.close()
    throw error
  }
  const blobs = new Blobs(s, connections, outside)
  const commits = new Commits({ s, connections, blobs, node: randomUUID(), lanes })
  return new DatabaseStore({ s, connections, commits, blobs, isSweeping: outside !== undefined })
}

/** Sets an offset for change numbers, because transaction numbers may be lower in a database filled from a copy. */
async function raiseChanges(connections: Connections, s: string): Promise<void> {
  await connections.query(
    `INSERT INTO ${s}.settings (name, json)
    SELECT '${CHANGES}', json_build_object('base', last - now + 1)::text FROM (
      SELECT coalesce(max(change), 0) AS last FROM ${s}.threads) threads, (
      SELECT pg_current_xact_id()::text::bigint AS now) own LEFT JOIN (
      SELECT (json::jsonb ->> 'base')::bigint AS base FROM ${s}.settings WHERE name = '${CHANGES}') known ON true
    WHERE last >= now + coalesce(base, 0)
    ON CONFLICT (name) DO UPDATE SET json = excluded.json`,
  )
}

/** The largest number that is sent as a bigint. */
const MOST = Number.MAX_SAFE_INTEGER

class DatabaseStore implements PostgresStore {
  readonly #s: string
  readonly #connections: Connections
  readonly #commits: Commits
  readonly #blobs: Blobs
  readonly #longReads = new LongReads()
  readonly #sweeping: NodeJS.Timeout | undefined
  /** The owner names under which this process has claimed threads. */
  readonly #owners = new Set<string>()
  #closing: Promise<void> | undefined

  constructor(parts: {
    readonly s: string
    readonly connections: Connections
    readonly commits: Commits
    readonly blobs: Blobs
    readonly isSweeping: boolean
  }) {
    this.#s = parts.s
    this.#connections = parts.connections
    this.#commits = parts.commits
    this.#blobs = parts.blobs
    if (parts.isSweeping)
      this.#sweeping = setInterval(() => void this.sweepBlobs().catch(() => {}), SWEEP_MS).unref()
  }

  counts(): { readonly roundTrips: number; readonly transactions: number } {
    return { roundTrips: this.#connections.roundTrips, transactions: this.#commits.transactions }
  }

  rows(): AsyncIterable<StoreRow> {
    this.#mustBeOpen()
    return databaseRows({ s: this.#s, connections: this.#connections, blobs: this.#blobs })
  }

  async load(rows: AsyncIterable<StoreRow> | Iterable<StoreRow>): Promise<void> {
    this.#mustBeOpen()
    await loadRows({ s: this.#s, connections: this.#connections, blobs: this.#blobs }, rows)
    await raiseChanges(this.#connections, this.#s)
  }

  async now(): Promise<number> {
    const [row] = await this.#query(`SELECT ${NOW} AS now`)
    return Number(row?.['now'])
  }

  async commit(commit: Commit): Promise<CommitResult> {
    this.#mustBeOpen()
    return this.#commits.commit(commit)
  }

  async claim(threadId: string, options: ClaimOptions): Promise<Claim | HeldThread | undefined> {
    this.#mustBeOpen()
    this.#owners.add(options.owner)
    return this.#commits.claim(threadId, options)
  }

  async renew(
    threadIds: readonly string[],
    { owner, leaseMs }: ClaimOptions,
  ): Promise<readonly string[]> {
    const rows = await this.#query(
      `UPDATE ${this.#s}.threads t SET lease_until = ${NOW} + $3 FROM (
        SELECT id FROM ${this.#s}.threads WHERE id = ANY($1) AND lease_owner = $2 ORDER BY id FOR UPDATE
      ) held WHERE t.id = held.id AND t.lease_owner = $2 RETURNING t.id`,
      [threadIds.filter(isStorable), owner, Math.round(leaseMs)],
    )
    const ids = new Set(rows.map((row) => row['id']))
    return threadIds.filter((id) => ids.has(id))
  }

  async release(owner: string, threadIds?: readonly string[]): Promise<void> {
    const filter = threadIds ? 'AND id = ANY($2)' : ''
    await this.#query(
      `UPDATE ${this.#s}.threads t
      SET lease_owner = NULL, lease_until = NULL, deaths = 0, survived = 0, on_trial = false FROM (
        SELECT id FROM ${this.#s}.threads WHERE lease_owner = $1 ${filter} ORDER BY id FOR UPDATE
      ) held WHERE t.id = held.id AND t.lease_owner = $1`,
      threadIds ? [owner, threadIds.filter(isStorable)] : [owner],
    )
  }

  async head(threadId: string): Promise<ThreadHead | undefined> {
    if (!isStorable(threadId)) return undefined
    const [row] = await this.#query(
      `SELECT ${HEAD_COLUMNS} FROM ${this.#s}.threads WHERE id = $1`,
      [threadId],
    )
    return row && headFromRow(row)
  }

  async headByClientId(
    tenant: string,
    clientId: string,
    owner?: string | null,
  ): Promise<ThreadHead | undefined> {
    if (!isStorable(tenant + clientId + (owner ?? ''))) return undefined
    const own = owner === undefined ? '' : 'AND owner IS NOT DISTINCT FROM $3'
    const [row] = await this.#query(
      `SELECT ${HEAD_COLUMNS} FROM ${this.#s}.threads WHERE tenant = $1 AND client_id = $2 ${own}
      ORDER BY created_at, id LIMIT 1`,
      owner === undefined ? [tenant, clientId] : [tenant, clientId, owner],
    )
    return row && headFromRow(row)
  }

  async list(query: ThreadQuery): Promise<readonly ThreadHead[]> {
    this.#mustBeOpen()
    const statement = threadListing(this.#s, query)
    if (!statement) return []
    return this.#longReads.run(pageOf(query).limit, async () => {
      // Not prepared, because queries have many forms, and the best plan depends on the values.
      const rows = await this.#connections.queryOnce(statement.text, statement.values)
      return rows.map(headFromRow)
    })
  }

  async waiting(query: WaitingQuery): Promise<readonly WaitingRow[]> {
    this.#mustBeOpen()
    const statement = waitingListing(this.#s, query)
    if (!statement) return []
    return this.#longReads.run(waitingLimit(query), async () => {
      // Not prepared, as for `list`.
      const rows = await this.#connections.queryOnce(statement.text, statement.values)
      return rows.map(waitingRowFrom)
    })
  }

  async tenants(): Promise<readonly string[]> {
    // Visits each tenant once, through an index.
    const rows = await this.#query(
      `WITH RECURSIVE tenants (name) AS (
        (SELECT tenant FROM ${this.#s}.threads ORDER BY tenant LIMIT 1)
        UNION ALL
        SELECT (SELECT tenant FROM ${this.#s}.threads WHERE tenant > name ORDER BY tenant LIMIT 1)
        FROM tenants WHERE name IS NOT NULL
      ) SELECT name FROM tenants WHERE name IS NOT NULL`,
    )
    return rows.map((row) => row['name'] as string)
  }

  async events(
    threadId: string,
    { after = 0, limit = Infinity }: { readonly after?: number; readonly limit?: number } = {},
  ): Promise<readonly StoredEvent[]> {
    if (!isStorable(threadId)) return []
    const from = Math.min(Math.max(Math.floor(after), 0), 2 ** 31 - 1)
    const rows = await this.#query(
      `SELECT t.seq AS last, e.seq, e.json FROM ${this.#s}.threads t
      LEFT JOIN LATERAL (SELECT seq, json FROM ${this.#s}.events WHERE log_id = t.log_id AND seq > $2
        ORDER BY seq LIMIT $3) e ON true
      WHERE t.id = $1 ORDER BY e.seq`,
      [threadId, from, Math.min(limit, MOST)],
    )
    const [first] = rows
    if (!first) return []
    const events = rows.filter((row) => row['json'] !== null)
    const expectedCount = Math.max(Math.min((first['last'] as number) - from, limit), 0)
    if (events.length !== expectedCount)
      throw new StoreError(`The log of thread ${threadId} is damaged: events are missing.`, {
        code: 'STORE_CORRUPT',
        hint: 'Restore a backup of the database.',
      })
    return events.map((row) => ({
      seq: row['seq'] as number,
      event: JSON.parse(row['json'] as string) as RuntimeEvent,
    }))
  }

  async due(now: number, limit: number): Promise<readonly string[]> {
    // Visits each tenant that has due threads once, through the index, and takes the first threads of each tenant.
    const rows = await this.#query(
      `WITH RECURSIVE tenants AS (
        (SELECT tenant FROM ${this.#s}.threads WHERE wake_at <= $1 ORDER BY tenant LIMIT 1)
        UNION ALL
        SELECT (SELECT tenant FROM ${this.#s}.threads WHERE wake_at <= $1 AND tenant > tenants.tenant
          ORDER BY tenant LIMIT 1) FROM tenants WHERE tenant IS NOT NULL
      )
      SELECT id FROM tenants CROSS JOIN LATERAL (
        SELECT id, wake_at, row_number() OVER (ORDER BY wake_at, id) AS turn FROM (
          SELECT id, wake_at FROM ${this.#s}.threads t
          WHERE t.tenant = tenants.tenant AND wake_at <= $1
            AND (lease_owner IS NULL OR lease_until <= ${NOW} OR lease_owner = ANY($3))
          ORDER BY wake_at, id LIMIT $2
        ) first
      ) turns WHERE tenants.tenant IS NOT NULL ORDER BY turn, wake_at, id LIMIT $2`,
      [Math.floor(Math.min(now, MOST)), Math.min(limit, MOST), [...this.#owners]],
    )
    return rows.map((row) => row['id'] as string)
  }

  async nextWake(after = -Infinity): Promise<number | undefined> {
    // A thread that another node works on is due only when its lease ends, so that time counts as a wake-up.
    const from = Math.floor(Math.min(Math.max(after, -MOST), MOST))
    const [row] = await this.#query(
      `SELECT least(
        (SELECT min(wake_at) FROM ${this.#s}.threads WHERE wake_at > $1),
        (SELECT min(lease_until) FROM ${this.#s}.threads
          WHERE lease_owner IS NOT NULL AND lease_owner <> ALL($2) AND wake_at <= $1 AND lease_until > $1)
      ) AS wake_at`,
      [from, [...this.#owners]],
    )
    return (row?.['wake_at'] as number | null) ?? undefined
  }

  async treeUsage(rootId: string): Promise<TreeUsage> {
    const [row] = await this.#query(
      `SELECT coalesce(sum(tokens), 0)::float8 AS tokens, coalesce(sum(cost_usd), 0) AS cost,
        coalesce(sum(unpriced), 0)::float8 AS unpriced, coalesce(sum(waiting), 0)::float8 AS waiting
      FROM ${this.#s}.threads WHERE root_id = $1`,
      [isStorable(rootId) ? rootId : ''],
    )
    return usageOfRow(row!)
  }

  async subtreeUsage(threadIds: readonly string[]): Promise<ReadonlyMap<string, TreeUsage>> {
    const sums = ['tokens', 'cost_usd', 'unpriced', 'waiting'].map(
      (name) => `sum(${name})::float8 AS ${name === 'cost_usd' ? 'cost' : name}`,
    )
    const columns = 'tokens, cost_usd, unpriced, waiting'
    const rows = await this.#query(
      `WITH RECURSIVE below AS (
        SELECT id AS top, id AS thread, ${columns} FROM ${this.#s}.threads
        WHERE id = ANY($1) AND parent_id IS NOT NULL
        UNION ALL
        SELECT top, id, t.tokens, t.cost_usd, t.unpriced, t.waiting
        FROM below JOIN ${this.#s}.threads t ON t.parent_id = thread
      )
      SELECT top AS id, ${sums.join(', ')} FROM below GROUP BY top
      UNION ALL
      SELECT root_id, ${sums.join(', ')} FROM ${this.#s}.threads WHERE root_id = ANY($1) GROUP BY root_id`,
      [threadIds.filter(isStorable)],
    )
    return new Map(rows.map((row) => [row['id'] as string, usageOfRow(row)]))
  }

  async totals(): Promise<StoreTotals> {
    const sums = [...COUNTED_LIFECYCLES, 'tokens'].map((name) => `sum(${name})::float8 AS ${name}`)
    const [row] = await this.#query(
      `SELECT ${sums.join(', ')}, sum(cost_usd) AS cost_usd FROM ${this.#s}.totals`,
    )
    return {
      threads: new Map(COUNTED_LIFECYCLES.map((name) => [name, row![name] as number])),
      tokens: row!['tokens'] as number,
      costUsd: row!['cost_usd'] as number,
    }
  }

  async counters(prefix: string): Promise<ReadonlyMap<string, number>> {
    if (!isStorable(prefix)) return new Map()
    // U+10FFFF sorts after every other character, so this range has exactly the names that begin with the prefix.
    const rows = await this.#query(
      `SELECT name, value FROM ${this.#s}.counters WHERE name >= $1 AND name < $2`,
      [prefix, `${prefix}\u{10ffff}`],
    )
    return new Map(rows.map((row) => [row['name'] as string, row['value'] as number]))
  }

  async blob(hash: string): Promise<Uint8Array | undefined> {
    this.#mustBeOpen()
    return isStorable(hash) ? this.#blobs.read(hash) : undefined
  }

  async audit(
    tree: string,
    { from = 0, requestId, limit = Infinity }: NonNullable<Parameters<Store['audit']>[1]> = {},
  ): Promise<readonly { readonly index: number; readonly line: string }[]> {
    if (!isStorable(tree + (requestId ?? ''))) return []
    const own = requestId === undefined ? '' : 'AND request_id = $4'
    const values = [tree, from, Math.min(limit, MOST)]
    const rows = await this.#query(
      `SELECT number, line FROM ${this.#s}.audit
      WHERE tree_key = (SELECT key FROM ${this.#s}.audit_trees WHERE tree = $1) AND number >= $2 ${own}
      ORDER BY number LIMIT $3`,
      requestId === undefined ? values : [...values, requestId],
    )
    return rows.map((row) => ({ index: row['number'] as number, line: row['line'] as string }))
  }

  async erase(threadId: string, skeleton: readonly RuntimeEvent[]): Promise<void> {
    await this.#replace(threadId, (before, { logId, change }) => {
      const { head, events, blobNames } = planErase(threadId, skeleton, {
        head: () => before,
        newLogId: () => logId,
        newChange: () => change,
      })
      return {
        head,
        statements: [
          ...headStatements(this.#s, [{ head, before }]),
          removalStatement(this.#s, head.tenant),
          ...insertStatements(
            `${this.#s}.events`,
            ['log_id', 'seq', 'json'],
            events.map(({ seq, json }) => [head.logId, seq, json]),
          ),
        ],
        hashes: blobNames.map(({ hash }) => hash),
      }
    })
  }

  async remove(threadId: string): Promise<void> {
    const s = this.#s
    await this.#replace(threadId, (before) => ({
      head: undefined,
      statements: before
        ? [
            `DELETE FROM ${s}.threads WHERE id = $1`,
            `DELETE FROM ${s}.audit
            WHERE tree_key = (SELECT key FROM ${s}.audit_trees WHERE tree = $1)`,
            `DELETE FROM ${s}.audit_trees WHERE tree = $1`,
          ]
            .map((text) => ({ text, values: [threadId] }))
            .concat(removalStatement(s, before.tenant))
        : [],
      hashes: [],
    }))
  }

  /** Locks a thread, deletes its events and the blobs that only it needs, and writes what the plan keeps. */
  async #replace(
    threadId: string,
    plan: (
      before: ThreadHead | undefined,
      numbers: Pick<ThreadHead, 'logId' | 'change'>,
    ) => {
      readonly head: ThreadHead | undefined
      readonly statements: ReturnType<typeof headStatements>
      /** The contents that the thread still names. */
      readonly hashes: readonly string[]
    },
  ): Promise<void> {
    this.#mustBeOpen()
    const s = this.#s
    await this.#connections.transaction(async (run) => {
      const [, rows = [], ids = [], changes = []] = await run([
        { text: 'BEGIN' },
        {
          text: `SELECT ${HEAD_COLUMNS} FROM ${s}.threads WHERE id = $1 FOR UPDATE`,
          values: [isStorable(threadId) ? threadId : ''],
        },
        { text: `SELECT nextval('${s}.log_ids') AS id`, values: [] },
        { text: `SELECT ${changeNumber(s)} AS change`, values: [] },
      ])
      const before = rows[0] && headFromRow(rows[0])
      const { head, statements, hashes } = plan(before, {
        logId: ids[0]!['id'] as number,
        change: changes[0]!['change'] as number,
      })
      if (!before) return run([{ text: 'ROLLBACK' }])
      const totals = totalsStatement(s, [{ head, before }])
      return run([
        { text: `DELETE FROM ${s}.events WHERE log_id = $1`, values: [before.logId] },
        { text: `DELETE FROM ${s}.snapshots WHERE log_id = $1`, values: [before.logId] },
        { text: `DELETE FROM ${s}.waiting WHERE thread_id = $1`, values: [threadId] },
        ...this.#blobs.endNames(threadId, hashes),
        ...statements,
        ...(totals ? [totals] : []),
        { text: 'COMMIT' },
      ])
    })
    if (this.#sweeping) await this.sweepBlobs()
  }

  readonly snapshots: NonNullable<Store['snapshots']> = {
    read: async (_, logId) => {
      const rows = await this.#query(
        `SELECT place, bytes FROM ${this.#s}.snapshots WHERE log_id = $1`,
        [logId],
      )
      return new Map(rows.map((row) => [row['place'] as number, row['bytes'] as Uint8Array]))
    },
    save: async (threadId, logId, parts) => {
      if (!isStorable(threadId) || parts.size === 0) return
      // Locks the row of the thread, so that no erasure happens between the check of the log and the insert.
      await this.#query(
        `INSERT INTO ${this.#s}.snapshots (log_id, place, bytes)
        SELECT t.log_id, part.place, decode(part.bytes, 'base64') FROM (
          SELECT log_id FROM ${this.#s}.threads WHERE id = $1 AND log_id = $2 FOR SHARE
        ) t, unnest($3::int[], $4::text[]) AS part (place, bytes)
        ON CONFLICT (log_id, place) DO UPDATE SET bytes = excluded.bytes`,
        [threadId, logId, [...parts.keys()], [...parts.values()].map(encodeBase64)],
      )
    },
  }

  async userValues(of: UserOf, prefix = ''): Promise<readonly UserValue[]> {
    if (!isStorable(of.tenant + of.user + prefix)) return []
    const rows = await this.#query(
      `SELECT key, json, version, updated_at FROM ${this.#s}.user_values
      WHERE tenant = $1 AND user_id = $2 AND starts_with(key, $3)`,
      [of.tenant, of.user, prefix],
    )
    return rows.map(userValueFrom).sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  async eraseUserValues({ tenant, user }: UserOf): Promise<number> {
    this.#mustBeOpen()
    if (!isStorable(tenant + user)) return 0
    return this.#connections.transaction(async (run) => {
      const [, , gone = []] = await run([
        { text: 'BEGIN' },
        { text: lockUsers(this.#s), values: [[JSON.stringify([tenant, user])]] },
        {
          text: `DELETE FROM ${this.#s}.user_values WHERE tenant = $1 AND user_id = $2 RETURNING 1`,
          values: [tenant, user],
        },
        { text: 'COMMIT' },
      ])
      return gone.length
    })
  }

  async setting(name: string): Promise<Setting | undefined> {
    if (!isStorable(name)) return undefined
    const [row] = await this.#query(`SELECT json FROM ${this.#s}.settings WHERE name = $1`, [name])
    return row && (JSON.parse(row['json'] as string) as Setting)
  }

  async setSetting(name: string, value: Setting): Promise<void> {
    await this.#query(
      `INSERT INTO ${this.#s}.settings (name, json) VALUES ($1, $2)
      ON CONFLICT (name) DO UPDATE SET json = excluded.json`,
      [name, storedText(value, `The setting ${name}`)],
    )
  }

  sweepBlobs({ keepMs }: { readonly keepMs?: number } = {}): Promise<number> {
    this.#mustBeOpen()
    return this.#blobs.sweep(keepMs)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    clearInterval(this.#sweeping)
    await this.#commits.idle()
    // If the database cannot be reached any more, nothing can be cleaned up there, so the error is ignored.
    await this.#commits.end().catch(() => {})
    await this.#connections.close()
  }

  #query(text: string, values: Parameters<Connections['query']>[1] = []): Promise<DatabaseRow[]> {
    this.#mustBeOpen()
    return this.#connections.query(text, values)
  }

  #mustBeOpen(): void {
    if (this.#closing) throw new StoreError('The store is closed.', { code: 'STORE_CLOSED' })
  }
}

/** Returns the statement that counts a removed or erased thread: see `removalsOf`. */
function removalStatement(s: string, tenant: string): { text: string; values: string[] } {
  return {
    text: `INSERT INTO ${s}.counters (name, value) VALUES ($1, 1)
      ON CONFLICT (name) DO UPDATE SET value = counters.value + 1`,
    values: [removalsOf(tenant)],
  }
}

function usageOfRow(row: DatabaseRow): TreeUsage {
  return {
    tokens: row['tokens'] as number,
    costUsd: row['cost'] as number,
    unpriced: row['unpriced'] as number,
    waiting: row['waiting'] as number,
  }
}

/** The time of the database in milliseconds, which decides when leases end. */
const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

function userValueFrom(row: DatabaseRow): UserValue {
  return {
    key: row['key'] as string,
    value: JSON.parse(row['json'] as string) as UserValue['value'],
    version: row['version'] as number,
    updatedAt: row['updated_at'] as string,
  }
}
