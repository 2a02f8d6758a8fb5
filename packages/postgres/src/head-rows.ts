import {
  headColumns,
  headOfRow,
  isStorable,
  pageOf,
  type HeadColumns,
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

/** Converts a row of `threads` to a head. */
export function headFromRow(row: DatabaseRow): ThreadHead {
  return headOfRow(row, (lists, column) => lists[column] as string[])
}

const LABELS: HeadColumns = headColumns.labels

// In other stores, times of events may have fractions of milliseconds, which these columns do not take.
const FIXED: HeadColumns = {
  ...headColumns.fixed,
  created_at: (head) => Math.round(head.createdAt),
}
const PROGRESS: HeadColumns = {
  ...headColumns.progress,
  updated_at: (head) => Math.round(head.updatedAt),
  wake_at: (head) => (head.wakeAt === null ? null : Math.ceil(head.wakeAt)),
}

const ALL: HeadColumns = { ...FIXED, ...LABELS, ...PROGRESS }

/** The columns of `threads` that heads (summaries of threads) consist of; `search` is used only by the server. */
export const HEAD_COLUMNS: string = Object.keys(ALL)
  .filter((column) => column !== 'search')
  .join(', ')

/** Returns the statements that write the rows of threads; `before` is undefined for a new thread. */
export function headStatements(
  s: string,
  heads: Iterable<{ readonly head: ThreadHead; readonly before: ThreadHead | undefined }>,
): Statement[] {
  const statements: Statement[] = []
  const inserted: Value[][] = []
  const valuesOf = (head: ThreadHead, columns: HeadColumns): Value[] =>
    Object.values(columns).map((value) => value(head))
  for (const { head, before } of heads) {
    if (!before) {
      inserted.push(valuesOf(head, ALL))
      continue
    }
    for (const columns of [PROGRESS, LABELS]) {
      // The search text is computed from the other labels, so it need not be compared.
      const parts = Object.values(columns).filter((value) => value !== LABELS['search'])
      if (parts.every((value) => value(head) === value(before))) continue
      const values = [head.id, ...valuesOf(head, columns)]
      statements.push({ text: updateText(s, columns), values })
    }
  }
  return [...statements, ...insertStatements(`${s}.threads`, Object.keys(ALL), inserted)]
}

const updates = new Map<string, string>()

function updateText(s: string, columns: HeadColumns): string {
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
