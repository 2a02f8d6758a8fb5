import {
  isStorable,
  pageOf,
  searchText,
  type Lease,
  type StoreRow,
  type ThreadHead,
  type ThreadQuery,
} from '@skein/runtime'
import {
  type DatabaseRow,
  inBatches,
  insertStatements,
  type Statement,
  type Value,
  valuesList,
} from './connections.ts'
import { isSettled } from './schema.ts'
import { partCondition } from './waiting.ts'

/** The columns of `threads` that heads (summaries of threads) consist of; `search` is used only by the server. */
export const HEAD_COLUMNS = `id, tenant, parent_id, root_id, client_id, created_at, owner, agent, title, tags,
  tools, granted_until, first_words, forked_from, forked_at, lifecycle, waiting, tokens, output_tokens, cached_tokens, cost_usd,
  unpriced, updated_at, seq, change, log_id, epoch, wake_at, attempts, lease_owner, lease_until, deaths, survived,
  on_trial, lease_address`

/** Converts a row of `threads` to a head. */
export function headOfRow(row: DatabaseRow): ThreadHead {
  return {
    id: row['id'] as string,
    tenant: row['tenant'] as string,
    owner: row['owner'] as string | null,
    agent: row['agent'] as string,
    parentId: row['parent_id'] as string | null,
    rootId: row['root_id'] as string,
    title: row['title'] as string | null,
    tags: row['tags'] as string[],
    tools: row['tools'] as string[],
    grantedUntil: row['granted_until'] as number | null,
    clientId: row['client_id'] as string | null,
    firstWords: row['first_words'] as string | null,
    forkedFrom: forkFrom(row),
    lifecycle: row['lifecycle'] as ThreadHead['lifecycle'],
    waiting: row['waiting'] as number,
    tokens: row['tokens'] as number,
    outputTokens: row['output_tokens'] as number,
    cachedTokens: row['cached_tokens'] as number,
    costUsd: row['cost_usd'] as number,
    unpriced: row['unpriced'] as number,
    createdAt: row['created_at'] as number,
    updatedAt: row['updated_at'] as number,
    seq: row['seq'] as number,
    change: row['change'] as number,
    logId: row['log_id'] as number,
    epoch: row['epoch'] as number,
    wakeAt: row['wake_at'] as number | null,
    attempts: row['attempts'] as number,
    lease: leaseFrom(row),
  }
}

function forkFrom(row: DatabaseRow): ThreadHead['forkedFrom'] {
  const threadId = row['forked_from'] as string | null
  return threadId === null ? null : { threadId, messageId: row['forked_at'] as string | null }
}

function leaseFrom(row: DatabaseRow): Lease | null {
  const owner = row['lease_owner'] as string | null
  if (owner === null) return null
  const address = row['lease_address'] as string | null
  const lease = {
    owner,
    until: row['lease_until'] as number,
    deaths: row['deaths'] as number,
    survived: row['survived'] as number,
    isOnTrial: row['on_trial'] as boolean,
  }
  return address === null ? lease : { ...lease, address }
}

/** For each column of `threads`, the function that computes its value. */
type Columns = Readonly<Record<string, (head: ThreadHead) => Value>>

/** The columns that change with nearly every commit, with the value of each. */
const PROGRESS: Columns = {
  lifecycle: (head) => head.lifecycle,
  waiting: (head) => head.waiting,
  granted_until: (head) => head.grantedUntil,
  tokens: (head) => head.tokens,
  output_tokens: (head) => head.outputTokens,
  cached_tokens: (head) => head.cachedTokens,
  cost_usd: (head) => head.costUsd,
  unpriced: (head) => head.unpriced,
  // In other stores, times of events may have fractions of milliseconds, which this column does not take.
  updated_at: (head) => Math.round(head.updatedAt),
  seq: (head) => head.seq,
  change: (head) => head.change,
  log_id: (head) => head.logId,
  epoch: (head) => head.epoch,
  wake_at: (head) => (head.wakeAt === null ? null : Math.ceil(head.wakeAt)),
  attempts: (head) => head.attempts,
  lease_owner: (head) => head.lease?.owner ?? null,
  lease_until: (head) => head.lease?.until ?? null,
  deaths: (head) => head.lease?.deaths ?? 0,
  survived: (head) => head.lease?.survived ?? 0,
  on_trial: (head) => head.lease?.isOnTrial ?? false,
  lease_address: (head) => head.lease?.address ?? null,
}

/** The columns that seldom change and are in several indexes. */
const LABELS: Columns = {
  client_id: (head) => head.clientId,
  owner: (head) => head.owner,
  agent: (head) => head.agent,
  title: (head) => head.title,
  tags: (head) => JSON.stringify(head.tags),
  tools: (head) => JSON.stringify(head.tools),
  first_words: (head) => head.firstWords,
  forked_from: (head) => head.forkedFrom?.threadId ?? null,
  forked_at: (head) => head.forkedFrom?.messageId ?? null,
  search: searchText,
}

const FIXED: Columns = {
  id: (head) => head.id,
  tenant: (head) => head.tenant,
  parent_id: (head) => head.parentId,
  root_id: (head) => head.rootId,
  created_at: (head) => Math.round(head.createdAt),
}

const ALL: Columns = { ...FIXED, ...LABELS, ...PROGRESS }

/** Returns the statements that write the rows of threads; `before` is undefined for a new thread. */
export function headStatements(
  s: string,
  heads: Iterable<{ readonly head: ThreadHead; readonly before: ThreadHead | undefined }>,
): Statement[] {
  const statements: Statement[] = []
  const inserted: Value[][] = []
  const valuesOf = (head: ThreadHead, columns: Columns): Value[] =>
    Object.values(columns).map((value) => value(head))
  for (const { head, before } of heads) {
    if (!before) {
      inserted.push(valuesOf(head, ALL))
      continue
    }
    for (const columns of [PROGRESS, LABELS]) {
      // The search text is computed from the other labels, so it need not be compared.
      const parts = Object.values(columns).filter((value) => value !== searchText)
      if (parts.every((value) => value(head) === value(before))) continue
      const values = [head.id, ...valuesOf(head, columns)]
      statements.push({ text: updateText(s, columns), values })
    }
  }
  return [...statements, ...insertStatements(`${s}.threads`, Object.keys(ALL), inserted)]
}

const updates = new Map<string, string>()

function updateText(s: string, columns: Columns): string {
  const key = `${s} ${columns === PROGRESS}`
  let text = updates.get(key)
  if (text === undefined) {
    const sets = Object.keys(columns).map((name, index) => `${name} = $${index + 2}`)
    text = `UPDATE ${s}.threads SET ${sets.join(', ')} WHERE id = $1`
    updates.set(key, text)
  }
  return text
}

/** A line of an audit log, with its number in the log. */
type AuditRow = Omit<Extract<StoreRow, { type: 'audit' }>, 'type' | 'tree'>

/**
 * Returns the statements that append lines to the audit log of a tree of threads and set its length. If
 * the tree is new, they also insert its row. If two transactions insert it at once, the second fails,
 * because its first line has the same number, and is repeated.
 */
export function auditStatements(s: string, tree: string, lines: readonly AuditRow[]): Statement[] {
  const columns = ['number', 'request_id', 'seq', 'line']
  const types = ['int', 'text', 'int', 'text']
  return inBatches(lines, (rows) => ({
    text: `WITH tree AS (
        INSERT INTO ${s}.audit_trees (tree, length) VALUES ($1, $2)
        ON CONFLICT (tree) DO UPDATE SET length = excluded.length RETURNING key)
      INSERT INTO ${s}.audit (tree_key, ${columns.join(', ')})
      SELECT tree.key, line.* FROM tree, (${valuesList(rows.length, columns, { after: 2, types })}) line`,
    values: [
      tree,
      rows.at(-1)!.index + 1,
      ...rows.flatMap(({ index, requestId, seq, line }) => [index, requestId, seq, line]),
    ],
  }))
}

const orders = {
  activity: 'updated_at DESC, id DESC',
  created: 'created_at DESC, id DESC',
  oldest: 'created_at, id',
  change: 'change DESC, id DESC',
}

/** For each order, the column and the comparison of threads that come after a place. */
const BEYOND = {
  activity: ['updated_at', '<'],
  created: ['created_at', '<'],
  oldest: ['created_at', '>'],
  change: ['change', '<'],
} as const

/** Builds the statement that lists the threads of a query; undefined if no thread can match. */
export function threadListing(s: string, query: ThreadQuery): Statement | undefined {
  const { tenant, owner, agent, lifecycle, parentId, rootId, isWaiting, search, tag } = query
  const { forkedFrom, changedAfter, tool, grantedAfter, after, idPart } = query
  const values: Value[] = []
  const conditions: string[] = []
  let isOdd = false
  const add = (condition: (place: string) => string, value: string | number | undefined): void => {
    if (value === undefined) return
    isOdd ||= typeof value === 'string' && !isStorable(value)
    values.push(value)
    conditions.push(condition(`$${values.length}`))
  }
  add((place) => `tenant = ${place}`, tenant)
  add((place) => `owner = ${place}`, owner)
  add((place) => `agent = ${place}`, agent)
  add((place) => `lifecycle = ${place}`, lifecycle)
  if (parentId === null) conditions.push('parent_id IS NULL')
  else add((place) => `parent_id = ${place}`, parentId)
  add((place) => `root_id = ${place}`, rootId)
  if (isWaiting !== undefined) conditions.push(isWaiting ? 'waiting > 0' : 'waiting <= 0')
  add((place) => `strpos(search, ${place}) > 0`, search?.toLowerCase())
  add((place) => partCondition('id', place), idPart || undefined)
  add((place) => `tags ? ${place}`, tag)
  add((place) => {
    const called = (column: string): string =>
      `SELECT ${column} FROM ${s}.threads WHERE tools ? ${place}`
    return `id IN (${called('id')} UNION ${called('root_id')})`
  }, tool)
  add((place) => `forked_from = ${place}`, forkedFrom)
  add((place) => `granted_until > ${place}`, grantedAfter)
  if (changedAfter) {
    values.push(changedAfter.change)
    const change = `$${values.length}`
    add((place) => `(change, id) > (${change}, ${place})`, changedAfter.id)
  }
  if (changedAfter || query.sort === 'change') conditions.push(isSettled(s))
  const sort = query.sort ?? 'activity'
  if (after && !changedAfter) {
    values.push(after.at)
    const [column, compare] = BEYOND[sort]
    const at = `$${values.length}`
    add((place) => `(${column}, id) ${compare} (${at}, ${place})`, after.id)
  }
  if (isOdd) return undefined
  const order = changedAfter ? 'change, id' : orders[sort]
  const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''
  const { limit, offset } = pageOf(query)
  const end = `LIMIT $${values.length + 1} OFFSET $${values.length + 2}`
  return {
    text: `SELECT ${HEAD_COLUMNS} FROM ${s}.threads ${where} ORDER BY ${order} ${end}`,
    values: [...values, limit, offset],
  }
}

/** Returns the statement that adds the changes of threads to the sums over all threads; undefined if no sum changes. */
export function totalsStatement(
  s: string,
  heads: Iterable<Readonly<Record<'head' | 'before', ThreadHead | undefined>>>,
): Statement | undefined {
  const sums = new Map<string, number>()
  const add = (name: string, value: number): void => {
    sums.set(name, (sums.get(name) ?? 0) + value)
  }
  for (const { head, before } of heads) {
    if (before) add(before.lifecycle, -1)
    if (head) add(head.lifecycle, 1)
    add('tokens', (head?.tokens ?? 0) - (before?.tokens ?? 0))
    add('cost_usd', (head?.costUsd ?? 0) - (before?.costUsd ?? 0))
  }
  if ([...sums.values()].every((value) => value === 0)) return undefined
  const sets = TOTALS.map((name, index) => `${name} = ${name} + $${index + 1}`)
  return {
    // Takes any row that no other transaction has locked; if all are locked, waits for one.
    text: `UPDATE ${s}.totals SET ${sets.join(', ')} WHERE part = coalesce(
      (SELECT part FROM ${s}.totals LIMIT 1 FOR UPDATE SKIP LOCKED),
      (SELECT part FROM ${s}.totals ORDER BY random() LIMIT 1))`,
    values: TOTALS.map((name) => sums.get(name) ?? 0),
  }
}

/** The lifecycles, which are columns of `totals`. */
export const COUNTED_LIFECYCLES: readonly ThreadHead['lifecycle'][] = [
  'idle',
  'queued',
  'running',
  'waiting',
  'stopping',
  'stopped',
  'failed',
  'terminated',
  'erased',
]

const TOTALS: readonly string[] = [...COUNTED_LIFECYCLES, 'tokens', 'cost_usd']
