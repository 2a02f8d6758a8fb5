import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { StoredEvent } from '../../contract/event.ts'
import { packText, rowSum } from './packed-text.ts'
import type { BlobName } from '../blob-names.ts'
import type { CommitPlan, EventRow, StoreView } from '../plan-commit.ts'
import {
  damaged,
  eventFrom,
  textFrom,
  userValueFrom,
  userValueName,
  type Row,
} from './sqlite-rows.ts'
import {
  headFrom,
  headUpdate,
  insertHead,
  labelValues,
  newRow,
  updateLabels,
} from './sqlite-head-rows.ts'
import {
  removalsOf,
  type ClaimOptions,
  type HeldThread,
  type Store,
  type StoreTotals,
} from '../store.ts'
import type { ThreadHead, ThreadLifecycle, TreeUsage } from '../head.ts'
import type { ThreadQuery } from '../thread-query.ts'
import type { UserOf, UserValue } from '../user-value.ts'
import type { WaitingQuery, WaitingRow } from '../waiting-query.ts'
import { LIFECYCLE_COUNTER, listThreads, tenantsIn } from './sqlite-list.ts'
import { subtreeUsages, usageFrom } from './sqlite-usage.ts'
import { listWaiting, writeWaiting } from './sqlite-waiting.ts'
import { claimedHead } from '../claimed-head.ts'

/** Masks the lower 32 bits of a row's id, which number the row within its log; the higher bits name the log. */
export const LOW = 0xff_ff_ff_ff

/** The condition for the events of the thread `?1` whose number is greater than `?2`. */
function inLog(): string {
  return range('(SELECT log_id FROM threads WHERE threads.id = ?1)', '>')
}

/** The condition for the audit lines of the tree of threads `?1` from the index `?2` on. */
function inTree(): string {
  return range('(SELECT key FROM audit_trees WHERE tree = ?1)', '>=')
}

function range(log: string, compare: string): string {
  return `id ${compare} ((${log} << 32) + ?2) AND id < ((${log} + 1) << 32)`
}

/** Reads and writes the tables of a store synchronously; the caller manages transactions. */
export class SqliteTables implements StoreView {
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()
  /** The number of the last change to any thread; undefined until it was read. No other process changes threads. */
  #lastChange: number | undefined
  /** Cache of rows of the table `threads`, for the threads that were used last. */
  readonly #heads = new Map<string, ThreadHead>()
  /** Cache for the audit logs that were written last: key and number of lines of each. */
  readonly #trees = new Map<string, { readonly key: number; length: number }>()
  /** Cache, by request: the position of its last audit line (the first has 0); -1 if it has no line. */
  readonly #lastLines = new Map<string, number>()
  /** Cache of what was written last: blobs, and which thread needs which blob. */
  readonly #written = new Map<string, true>()

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  /** Empties the caches, because a transaction was rolled back and they may be wrong. */
  forget(): void {
    for (const cache of [this.#heads, this.#trees, this.#lastLines, this.#written]) cache.clear()
  }

  head(id: string): ThreadHead | undefined {
    const cachedHead = this.#heads.get(id)
    if (cachedHead) return cachedHead
    const row = this.#get('SELECT * FROM threads WHERE id = ?', id)
    if (!row) return undefined
    const head = headFrom(row)
    remember(this.#heads, id, head)
    return head
  }

  headByClientId(tenant: string, clientId: string, owner?: string | null): ThreadHead | undefined {
    const own = owner === undefined ? '' : 'AND owner IS ?'
    // Otherwise SQLite would read the threads of the tenant in the order of their creation.
    const row = this.#get(
      `SELECT * FROM threads INDEXED BY threads_by_client_id
      WHERE tenant = ? AND client_id = ? ${own} ORDER BY created_at, id LIMIT 1`,
      tenant,
      clientId,
      ...(owner === undefined ? [] : [owner]),
    )
    return row && headFrom(row)
  }

  hasClientId(tenant: string, owner: string | null, clientId: string): boolean {
    return this.headByClientId(tenant, clientId, owner) !== undefined
  }

  newLogId(): number {
    return this.#nextOf('log_id')
  }

  newChange(): number {
    this.#lastChange ??= Number(
      this.#get(`SELECT max(value, (SELECT coalesce(max(change), 0) FROM threads)) AS last
        FROM counters WHERE name = 'change'`)?.['last'],
    )
    return ++this.#lastChange
  }

  newVersion(): number {
    return this.#nextOf('user_version')
  }

  #nextOf(counter: 'log_id' | 'user_version'): number {
    const sql = 'UPDATE counters SET value = value + 1 WHERE name = ? RETURNING value'
    return Number(this.#get(sql, counter)?.['value'])
  }

  hasAuditLine(requestId: string, seq: number): boolean {
    let last = this.#lastLines.get(requestId)
    if (last === undefined) {
      const row = this.#get('SELECT max(seq) AS last FROM audit WHERE request_id = ?', requestId)
      last = (row?.['last'] as number | null) ?? -1
      remember(this.#lastLines, requestId, last)
    }
    // New lines of a request get higher numbers than its last line, so usually the table need not be read.
    if (seq > last) return false
    return this.#has('SELECT 1 FROM audit WHERE request_id = ? AND seq = ?', requestId, seq)
  }

  auditLength(tree: string): number {
    const entry = this.#trees.get(tree)
    if (entry) return entry.length
    const sql = `SELECT id & ${LOW} AS idx FROM audit WHERE ${inTree()} ORDER BY id DESC LIMIT 1`
    const last = this.#get(sql, tree, 0)
    return last ? Number(last['idx']) + 1 : 0
  }

  isSpent(jti: string): boolean {
    return this.#has('SELECT 1 FROM spent WHERE jti = ?', jti)
  }

  counter(name: string): number {
    return Number(this.#get('SELECT value FROM counters WHERE name = ?', name)?.['value'] ?? 0)
  }

  counters(prefix: string): Map<string, number> {
    // U+10FFFF sorts after every other character, so this range has exactly the names that begin with the prefix.
    const sql = `SELECT name, value FROM counters WHERE name >= ?1 AND name < ?1 || char(0x10ffff)`
    const rows = this.#all(sql, prefix)
    return new Map(rows.map((row) => [row['name'] as string, Number(row['value'])]))
  }

  userVersion({ tenant, user }: UserOf, key: string): number | undefined {
    const sql = 'SELECT version FROM user_values WHERE tenant = ? AND user = ? AND key = ?'
    return this.#get(sql, tenant, user, key)?.['version'] as number | undefined
  }

  userValueCount({ tenant, user }: UserOf): number {
    const sql = 'SELECT count(*) AS count FROM user_values WHERE tenant = ? AND user = ?'
    return Number(this.#get(sql, tenant, user)?.['count'])
  }

  userValues({ tenant, user }: UserOf, prefix: string): UserValue[] {
    return this.#all(
      'SELECT * FROM user_values WHERE tenant = ? AND user = ? AND substr(key, 1, length(?3)) = ?3',
      tenant,
      user,
      prefix,
    )
      .map(userValueFrom)
      .sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  eraseUserValues({ tenant, user }: UserOf): number {
    const count = this.userValueCount({ tenant, user })
    this.#run('DELETE FROM user_values WHERE tenant = ? AND user = ?', tenant, user)
    return count
  }

  /** Lists threads. Yields where the caller may let other work run: see `listThreads`. */
  list(query: ThreadQuery): Generator<void, readonly ThreadHead[], undefined> {
    return listThreads((sql, ...values) => this.#all(sql, ...values), query)
  }

  waiting(query: WaitingQuery): readonly WaitingRow[] {
    return listWaiting((sql, ...values) => this.#all(sql, ...values), query)
  }

  tenants(): readonly string[] {
    return tenantsIn((sql, ...values) => this.#all(sql, ...values))
  }

  events(threadId: string, after: number, limit: number): StoredEvent[] {
    const log = this.#log(threadId)
    if (!log) return []
    const from = Math.max(Math.floor(after), 0)
    const count = Math.max(Math.min(log.seq - from, limit), 0)
    if (count === 0) return [] // a drain that looks for new events mostly finds none
    // The range ends at a known number instead of a LIMIT, because SQLite prepares a statement anew for each LIMIT.
    const rows = this.#all(
      `SELECT id & ${LOW} AS seq, json, sum FROM events
      WHERE id > (?1 << 32) + ?2 AND id <= (?1 << 32) + ?3 ORDER BY id`,
      log.logId,
      from,
      from + count,
    )
    if (rows.length !== count) throw damaged(`The log of thread ${threadId}`, 'events are missing')
    return rows.map((row) => eventFrom(threadId, row))
  }

  /** Returns the id and length of a thread's log, even if other columns of the thread's row are damaged. */
  #log(id: string): Pick<ThreadHead, 'logId' | 'seq'> | undefined {
    const head = this.#heads.get(id)
    if (head) return head
    const row = this.#get('SELECT log_id, seq FROM threads WHERE id = ?', id)
    return row && { logId: row['log_id'] as number, seq: row['seq'] as number }
  }

  due(now: number, limit: number): string[] {
    // Usually at most one thread is due, and then the sorting below is not needed.
    const first = this.#all('SELECT id FROM threads WHERE wake_at <= ? LIMIT 2', now)
    const sql = `SELECT id FROM (
        SELECT id, wake_at, row_number() OVER (PARTITION BY tenant ORDER BY wake_at, id) AS turn
        FROM threads WHERE wake_at <= ?
      ) ORDER BY turn, wake_at, id LIMIT ?`
    const rows = first.length < 2 ? first.slice(0, limit) : this.#all(sql, now, rowCount(limit))
    return rows.map((row) => row['id'] as string)
  }

  nextWake(after: number): number | undefined {
    const sql = 'SELECT min(wake_at) AS wake_at FROM threads WHERE wake_at > ?'
    return (this.#get(sql, after)?.['wake_at'] as number | null) ?? undefined
  }

  treeUsage(rootId: string): TreeUsage {
    const row = this.#get(
      `SELECT total(tokens) AS tokens, total(cost_usd) AS cost, total(unpriced) AS unpriced,
        total(waiting) AS waiting
      FROM threads WHERE root_id = ?`,
      rootId,
    )
    return usageFrom(row)
  }

  /** Sums over subtrees. Yields where the caller may let other work run. */
  subtreeUsage(
    threadIds: readonly string[],
  ): Generator<void, ReadonlyMap<string, TreeUsage>, undefined> {
    const heads = threadIds.flatMap((id) => this.head(id) ?? [])
    return subtreeUsages((sql, ...values) => this.#all(sql, ...values), heads)
  }

  totals(): StoreTotals {
    const values = new Map(
      this.#all(
        `SELECT name, value FROM counters WHERE name IN ('tokens', 'cost_usd')
        OR name BETWEEN '${LIFECYCLE_COUNTER}' AND '${LIFECYCLE_COUNTER}~'`,
      ).map((row) => [row['name'] as string, row['value'] as number]),
    )
    const threads = [...values].flatMap(([name, count]) =>
      name.startsWith(LIFECYCLE_COUNTER)
        ? [[name.slice(LIFECYCLE_COUNTER.length) as ThreadLifecycle, count] as const]
        : [],
    )
    const { tokens = 0, cost_usd: costUsd = 0 } = Object.fromEntries(values)
    return { threads: new Map(threads), tokens, costUsd }
  }

  blob(hash: string): Uint8Array | undefined {
    const row = this.#get('SELECT bytes, sum FROM blobs WHERE hash = ?', hash)
    if (!row) return undefined
    const bytes = row['bytes']
    if (!(bytes instanceof Uint8Array) || rowSum(hash, 0, bytes) !== row['sum'])
      throw damaged(`The content ${hash}`)
    return bytes
  }

  audit(
    tree: string,
    { from = 0, requestId, limit = Infinity }: NonNullable<Parameters<Store['audit']>[1]> = {},
  ): { index: number; line: string }[] {
    // Without `INDEXED BY`, SQLite reads all lines of the tree to find those of the request.
    const own = requestId === undefined ? '' : 'AND request_id = ?3'
    const index = requestId === undefined ? '' : 'INDEXED BY audit_by_request'
    // Each turn reads all lines of its request: without a LIMIT, for which SQLite prepares a statement anew.
    const end = limit === Infinity ? '' : requestId === undefined ? 'LIMIT ?3' : 'LIMIT ?4'
    return this.#all(
      `SELECT id & ${LOW} AS idx, line, sum FROM audit ${index}
      WHERE ${inTree()} ${own} ORDER BY id ${end}`,
      tree,
      from,
      ...(requestId === undefined ? [] : [requestId]),
      ...(limit === Infinity ? [] : [rowCount(limit)]),
    ).map((row) => {
      const index = row['idx'] as number
      const line = textFrom(tree, index, row['line'], row['sum'])
      if (line === undefined) throw damaged(`Line ${index} of the audit log of thread ${tree}`)
      return { index, line }
    })
  }

  setting(name: string): string | undefined {
    return this.#get('SELECT json FROM settings WHERE name = ?', name)?.['json'] as
      string | undefined
  }

  setSetting(name: string, json: string): void {
    this.#run('REPLACE INTO settings (name, json) VALUES (?, ?)', name, json)
  }

  removeSetting(name: string): void {
    this.#run('DELETE FROM settings WHERE name = ?', name)
  }

  write(plan: CommitPlan): void {
    this.#count(plan.heads.map(({ head, before }) => ({ before, after: head })))
    for (const { head, before } of plan.heads) this.#writeHead(head, before)
    this.#append(plan.events, new Map(plan.heads.map(({ head }) => [head.id, head.logId])))
    for (const change of plan.waiting)
      writeWaiting((sql, ...values) => this.#run(sql, ...values), change)
    for (const { hash, bytes } of plan.blobs) {
      // Many commits bring the same blob again, e.g. the system text and tools of a model request.
      if (this.#written.has(hash)) continue
      this.#run(
        'INSERT OR IGNORE INTO blobs (hash, bytes, sum) VALUES (?, ?, ?)',
        hash,
        bytes,
        rowSum(hash, 0, bytes),
      )
      remember(this.#written, hash, true)
    }
    this.#nameBlobs(plan.blobNames)
    for (const { tree, index, requestId, seq, line } of plan.audit) {
      const content = packText(line)
      const log = this.#tree(tree)
      log.length = index + 1
      if (seq > (this.#lastLines.get(requestId) ?? Infinity)) this.#lastLines.set(requestId, seq)
      this.#run(
        'INSERT INTO audit (id, request_id, seq, line, sum) VALUES ((?1 << 32) | ?2, ?3, ?4, ?5, ?6)',
        log.key,
        index,
        requestId,
        seq,
        content,
        rowSum(tree, index, content),
      )
    }
    for (const { jti, exp } of plan.spent)
      this.#run('INSERT INTO spent (jti, exp) VALUES (?, ?)', jti, exp)
    for (const [name, value] of plan.counters)
      if (value === null) this.#run('DELETE FROM counters WHERE name = ?', name)
      else this.#run('INSERT OR REPLACE INTO counters (name, value) VALUES (?, ?)', name, value)
    for (const { tenant, user, key, json, version, updatedAt } of plan.userValues)
      if (json === null)
        this.#run(
          'DELETE FROM user_values WHERE tenant = ? AND user = ? AND key = ?',
          tenant,
          user,
          key,
        )
      else
        this.#run(
          `REPLACE INTO user_values (tenant, user, key, json, version, updated_at, sum)
          VALUES (?, ?, ?, ?, ?, ?, ?)`,
          tenant,
          user,
          key,
          json,
          version,
          updatedAt,
          rowSum(userValueName(tenant, user, key), version, json),
        )
  }

  claim(id: string, options: ClaimOptions, now: number): ThreadHead | HeldThread | undefined {
    const before = this.head(id)
    if (!before) return undefined
    const after = claimedHead(before, options, now)
    if (!('heldBy' in after)) this.#updateHead(after, before)
    return after
  }

  renew(ids: readonly string[], owner: string, until: number): string[] {
    const sql = 'UPDATE threads SET lease_until = ? WHERE id = ? AND lease_owner = ? RETURNING id'
    for (const id of ids) this.#heads.delete(id)
    return ids.filter((id) => this.#has(sql, until, id, owner))
  }

  release(owner: string, ids?: readonly string[]): void {
    const free = `UPDATE threads SET lease_owner = NULL, lease_until = NULL, deaths = 0, survived = 0,
      on_trial = 0, lease_address = NULL`
    this.#heads.clear()
    if (!ids) this.#run(`${free} WHERE lease_owner = ?`, owner)
    for (const id of ids ?? []) this.#run(`${free} WHERE id = ? AND lease_owner = ?`, id, owner)
  }

  /** Ends all leases. They count as not released, because the process that held them has died. */
  endLeases(): void {
    this.#heads.clear()
    this.#run('UPDATE threads SET lease_until = 0 WHERE lease_owner IS NOT NULL')
  }

  replaceLog(head: ThreadHead, events: readonly EventRow[], names: readonly BlobName[]): void {
    const hashes = this.#blobsOf(head.id)
    const before = this.head(head.id)
    this.#count([{ before, after: head }])
    this.#deleteLog(head.id)
    this.#run('DELETE FROM blob_names WHERE thread_id = ?', head.id)
    this.#run('DELETE FROM waiting WHERE thread_id = ?', head.id)
    if (before) this.#updateHead(head, before)
    this.#add(new Map([[removalsOf(head.tenant), 1]]))
    this.#updateLabels(head)
    this.#append(events, new Map([[head.id, head.logId]]))
    this.#nameBlobs(names)
    this.#dropUnnamed(hashes)
  }

  remove(id: string): void {
    const hashes = this.#blobsOf(id)
    const head = this.head(id)
    this.#count([{ before: head, after: undefined }])
    if (head) {
      this.#add(new Map([[removalsOf(head.tenant), 1]]))
      // The removed thread may have the greatest change number, which must not be used again after a restart.
      this.#run(`UPDATE counters SET value = ? WHERE name = 'change'`, this.newChange())
    }
    this.#deleteLog(id)
    this.#heads.delete(id)
    this.#trees.delete(id)
    this.#lastLines.clear()
    // The database deletes the rows of `blob_names` together with the thread.
    this.#run('DELETE FROM threads WHERE id = ?', id)
    this.#run(`DELETE FROM audit WHERE ${inTree()}`, id, 0)
    this.#run('DELETE FROM audit_trees WHERE tree = ?', id)
    this.#dropUnnamed(hashes)
  }

  #deleteLog(id: string): void {
    this.#run(`DELETE FROM events WHERE ${inLog()}`, id, 0)
    this.#run(`DELETE FROM snapshots WHERE ${inLog()}`, id, -1)
  }

  snapshot(logId: number): Map<number, Uint8Array> {
    const sql = `SELECT id & ${LOW} AS place, bytes FROM snapshots
      WHERE id >= ?1 << 32 AND id < (?1 + 1) << 32 ORDER BY id`
    const rows = this.#all(sql, logId)
    return new Map(rows.map((row) => [row['place'] as number, row['bytes'] as Uint8Array]))
  }

  saveSnapshot(id: string, logId: number, parts: ReadonlyMap<number, Uint8Array>): void {
    if (!this.#has('SELECT 1 FROM threads WHERE id = ? AND log_id = ?', id, logId)) return
    for (const [place, bytes] of parts)
      this.#run(
        'REPLACE INTO snapshots (id, bytes) VALUES ((?1 << 32) | ?2, ?3)',
        logId,
        place,
        bytes,
      )
  }

  /** Updates the sums over all threads (lifecycles, tokens, cost) for threads that change from `before` to `after`. */
  #count(changes: readonly { readonly before?: ThreadHead; readonly after?: ThreadHead }[]): void {
    const sums = new Map<string, number>()
    const add = (name: string, value: number): void => {
      if (value !== 0) sums.set(name, (sums.get(name) ?? 0) + value)
    }
    for (const { before, after } of changes) {
      if (after?.lifecycle !== before?.lifecycle) {
        if (before) add(`${LIFECYCLE_COUNTER}${before.lifecycle}`, -1)
        if (after) add(`${LIFECYCLE_COUNTER}${after.lifecycle}`, 1)
      }
      add('tokens', (after?.tokens ?? 0) - (before?.tokens ?? 0))
      add('cost_usd', (after?.costUsd ?? 0) - (before?.costUsd ?? 0))
    }
    this.#add(sums)
  }

  #add(sums: ReadonlyMap<string, number>): void {
    if (sums.size === 0) return
    const rows = Array.from(sums, () => '(?, ?)').join(', ')
    const sql = `INSERT INTO counters (name, value) VALUES ${rows}
      ON CONFLICT (name) DO UPDATE SET value = value + excluded.value`
    this.#run(sql, ...[...sums].flat())
  }

  #writeHead(head: ThreadHead, before: ThreadHead | undefined): void {
    if (!before) {
      this.#run(insertHead, ...newRow(head))
      return
    }
    this.#updateHead(head, before)
    const { owner, agent, title, tags, tools, firstWords } = before
    const isSame = owner === head.owner && agent === head.agent && title === head.title
    const hasSameNames = tags === head.tags && tools === head.tools
    if (!isSame || !hasSameNames || firstWords !== head.firstWords) this.#updateLabels(head)
  }

  #updateHead(head: ThreadHead, before: ThreadHead): void {
    const update = headUpdate(head, before)
    if (!update) return
    this.#run(update.sql, ...update.values)
    remember(this.#heads, head.id, head)
  }

  #updateLabels(head: ThreadHead): void {
    this.#run(updateLabels, ...labelValues(head), head.id)
    this.#heads.delete(head.id) // SQLite does not return every text as it was given
  }

  /** Returns key and length of the audit log of a tree of threads; creates the log if there is none. */
  #tree(tree: string): { readonly key: number; length: number } {
    const earlier = this.#trees.get(tree)
    if (earlier) return earlier
    this.#run('INSERT OR IGNORE INTO audit_trees (tree) VALUES (?)', tree)
    const key = Number(this.#get('SELECT key FROM audit_trees WHERE tree = ?', tree)?.['key'])
    const entry = { key, length: this.auditLength(tree) }
    remember(this.#trees, tree, entry)
    return entry
  }

  #append(events: readonly EventRow[], logIds: ReadonlyMap<string, number>): void {
    for (const { threadId, seq, json } of events) {
      const content = packText(json)
      this.#run(
        'INSERT INTO events (id, json, sum) VALUES ((?1 << 32) | ?2, ?3, ?4)',
        logIds.get(threadId)!,
        seq,
        content,
        rowSum(threadId, seq, content),
      )
    }
  }

  #nameBlobs(names: readonly BlobName[]): void {
    for (const { threadId, hash } of names) {
      const name = `${threadId} ${hash}`
      if (this.#written.has(name)) continue
      this.#run('INSERT OR IGNORE INTO blob_names (thread_id, hash) VALUES (?, ?)', threadId, hash)
      remember(this.#written, name, true)
    }
  }

  /** Returns the hashes of the blobs that a thread needs, before the thread's rows are removed. */
  #blobsOf(threadId: string): string[] {
    this.#written.clear()
    const names = this.#all('SELECT hash FROM blob_names WHERE thread_id = ?', threadId)
    return names.map((row) => row['hash'] as string)
  }

  #dropUnnamed(hashes: readonly string[]): void {
    for (const hash of hashes)
      this.#run(
        'DELETE FROM blobs WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM blob_names WHERE hash = ?1)',
        hash,
      )
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql)
    if (!statement) {
      statement = this.#database.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }

  #run(sql: string, ...values: SQLInputValue[]): void {
    this.#prepare(sql).run(...values)
  }

  #get(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#prepare(sql).get(...values)
  }

  #all(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#prepare(sql).all(...values)
  }

  #has(sql: string, ...values: SQLInputValue[]): boolean {
    return this.#get(sql, ...values) !== undefined
  }
}

const MAX_REMEMBERED = 256

function remember<T>(all: Map<string, T>, id: string, value: T): void {
  if (all.size >= MAX_REMEMBERED) all.clear()
  all.set(id, value)
}

/** Converts a limit that may be infinite, which SQLite does not accept. */
function rowCount(limit: number): number {
  return Math.min(limit, Number.MAX_SAFE_INTEGER)
}
