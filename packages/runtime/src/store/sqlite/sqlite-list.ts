import type { SQLInputValue } from 'node:sqlite'
import { headFrom } from './sqlite-head-rows.ts'
import type { Row } from './sqlite-rows.ts'
import type { ThreadHead, ThreadLifecycle } from '../head.ts'
import type { ThreadQuery } from '../thread-query.ts'
import { orders, pageOf } from '../select-threads.ts'

/** The names of counters that count the threads of a lifecycle begin with this text. */
export const LIFECYCLE_COUNTER = 'threads '

/** Runs a statement and returns its rows. */
export type ReadRows = (sql: string, ...values: SQLInputValue[]) => Row[]

/** A part of a statement, with the values of its parameters in order. */
interface Sql {
  readonly text: string
  readonly values: readonly SQLInputValue[]
}

/** What a condition compares. Conditions on the same thing can be looked up in the same indexes. */
type Subject =
  | 'tenant'
  | 'owner'
  | 'parent'
  | 'root'
  | 'fork'
  | 'resting'
  | 'waiting'
  | 'grant'
  | 'tag'
  | 'tool'
  | 'other'

interface Condition extends Sql {
  readonly about: Subject
}

type Order = 'activity' | 'created' | 'change'

/** The column that each order sorts by. */
const COLUMNS: Readonly<Record<Order, string>> = {
  activity: 'updated_at',
  created: 'created_at',
  change: 'change',
}

/** An index whose first columns are compared with conditions, and whose next columns are an order of threads. */
interface OrderedIndex {
  readonly index: string
  readonly subjects: readonly Subject[]
  readonly order: Order
}

/** Indexes of one tree or parent that have the order of creation. */
const ORDERED_SETS: readonly OrderedIndex[] = [
  { index: 'threads_by_parent', subjects: ['parent'], order: 'created' },
  { index: 'threads_by_root', subjects: ['root'], order: 'created' },
]

/** Indexes of one tenant that have an order, the most selective first. */
const ORDERED: readonly OrderedIndex[] = [
  { index: 'threads_by_lifecycle', subjects: ['tenant', 'resting'], order: 'activity' },
  { index: 'threads_waiting', subjects: ['tenant', 'waiting'], order: 'activity' },
  { index: 'threads_by_owner', subjects: ['tenant', 'owner'], order: 'activity' },
  { index: 'threads_by_activity', subjects: ['tenant'], order: 'activity' },
  { index: 'threads_by_creation', subjects: ['tenant'], order: 'created' },
  { index: 'threads_by_change', subjects: ['tenant'], order: 'change' },
]

/** The largest set of threads that is sorted. A larger one is found by reading threads in their order. */
const MOST_SORTED = 1000
/** How many threads are compared, without a pause, with conditions that no index has. */
const SLICE = 500
/** How many places of an index are skipped without a pause. */
const SKIP = 5000

/**
 * Lists the threads of a query in short statements, so that no list blocks the process for long. Yields between
 * statements that may have read many rows: there the caller lets other work run.
 */
export function listThreads(
  read: ReadRows,
  query: ThreadQuery,
): Generator<void, ThreadHead[], undefined> {
  return listPage(read, query, pageOf(query))
}

/** The part of a list that is read. */
interface Page {
  readonly limit: number
  readonly offset: number
}

function* listPage(
  read: ReadRows,
  query: ThreadQuery,
  page: Page,
): Generator<void, ThreadHead[], undefined> {
  const { limit, offset } = page
  if (limit === 0) return []
  const { sort = 'activity', changedAfter } = query
  const order: Order = changedAfter ? 'change' : sort === 'oldest' ? 'created' : sort
  const conditions = conditionsOf(query)
  const isUsable = (one: OrderedIndex): boolean =>
    one.order === order &&
    one.subjects.every((subject) => conditions.some(({ about }) => about === subject))
  const isDescending = !changedAfter && sort !== 'oldest'
  const inOrder: Listing = { read, query, page, conditions, order, isDescending }
  const own = ORDERED_SETS.find(isUsable)
  if (own) return yield* walk(inOrder, own)
  const small = smallSet(inOrder)
  if (small) return small
  const index = ORDERED.find(isUsable)
  if (index) return yield* walk(inOrder, index)
  // Every other order begins with the tenant, so the tenants are listed one after the other.
  const compare = orders[sort]
  let first: ThreadHead[] = []
  for (const tenant of tenantsIn(read)) {
    const whole = { limit: offset + limit, offset: 0 }
    const rows = yield* listPage(read, { ...query, tenant }, whole)
    first = [...first, ...rows]
      .toSorted(changedAfter ? (a, b) => -orders.change(a, b) : compare)
      .slice(0, offset + limit)
    yield
  }
  return first.slice(offset)
}

/** Returns the tenants that have threads; visits each tenant once in an index. */
export function tenantsIn(read: ReadRows): string[] {
  const rows = read(`WITH RECURSIVE tenants (name) AS (
      SELECT min(tenant) FROM threads
      UNION ALL SELECT (SELECT min(tenant) FROM threads WHERE tenant > name) FROM tenants
        WHERE name IS NOT NULL
    ) SELECT name FROM tenants WHERE name IS NOT NULL`)
  return rows.map((row) => row['name'] as string)
}

/** The parts of a list that every way to read it needs. */
interface Listing {
  readonly read: ReadRows
  readonly query: ThreadQuery
  readonly page: Page
  readonly conditions: readonly Condition[]
  readonly order: Order
  readonly isDescending: boolean
}

/**
 * Finds threads by an index that has no useful order, and sorts them. Returns undefined if the query has no
 * condition with such an index, or if many threads match it.
 */
function smallSet(listing: Listing): ThreadHead[] | undefined {
  const { read, query, page, conditions } = listing
  const { limit, offset } = page
  for (const condition of conditions) {
    const set = setOf(condition, query)
    if (!set) continue
    const { text, values } = set.members
    const row = read(`SELECT count(*) AS count FROM (${text})`, ...values)
    if (Number(row[0]?.['count']) > MOST_SORTED) continue
    // The plus sign keeps SQLite from choosing the index of the tenant instead.
    const others = conditions
      .filter((one) => one !== condition)
      .map((one) => ({ ...one, text: one.text.replace(/^tenant/, '+tenant') }))
    const where = [set.condition, ...others, ...beginning(listing)]
    return select(read, '*', set.from, where, ending(listing, limit, offset)).map(headFrom)
  }
  return undefined
}

/** A set of threads that an index finds: its condition, and a statement that reads its members up to a limit. */
interface IndexedSet {
  readonly from: string
  readonly condition: Sql
  readonly members: Sql
}

const SET_INDEXES: Partial<Record<Subject, string>> = {
  parent: 'threads_by_parent',
  root: 'threads_by_root',
  fork: 'threads_by_fork',
  grant: 'threads_by_grant',
}

function setOf(condition: Condition, { tenant, tag, tool }: ThreadQuery): IndexedSet | undefined {
  const limit = `LIMIT ${MOST_SORTED + 1}`
  const index = SET_INDEXES[condition.about]
  if (index !== undefined) {
    const from = `threads INDEXED BY ${index}`
    const { text, values } = condition
    return {
      from,
      condition,
      members: { text: `SELECT 1 FROM ${from} WHERE ${text} ${limit}`, values },
    }
  }
  if (condition.about === 'tag' && tenant !== undefined && tag !== undefined) {
    const from = 'FROM thread_tags WHERE tenant = ? AND tag = ?'
    const values = [tenant, tag]
    return {
      from: 'threads',
      condition: { text: `id IN (SELECT thread_id ${from})`, values },
      members: { text: `SELECT 1 ${from} ${limit}`, values },
    }
  }
  if (condition.about === 'tool' && tool !== undefined) {
    const from = 'FROM thread_tools WHERE tool = ?'
    const ids = `SELECT thread_id ${from} UNION SELECT root_id ${from}`
    return {
      from: 'threads',
      condition: { text: `id IN (${ids})`, values: [tool, tool] },
      members: { text: `SELECT 1 ${from} ${limit}`, values: [tool] },
    }
  }
  return undefined
}

/** Reads threads in the order of an index, a part at a time, and keeps those that meet the other conditions. */
function* walk(
  listing: Listing,
  { index, subjects }: OrderedIndex,
): Generator<void, ThreadHead[], undefined> {
  const { read, query, page, conditions, order } = listing
  const { limit, offset } = page
  const from = `threads INDEXED BY ${index}`
  const keys = conditions.filter(({ about }) => subjects.includes(about))
  const others = conditions.filter(({ about }) => !subjects.includes(about))
  let start = beginning(listing)
  /** Returns the place that is `count` places further on; undefined if the list ends before. */
  const placeAfter = (count: number): Place | undefined => {
    const columns = `${COLUMNS[order]} AS at, id`
    const [row] = select(read, columns, from, [...keys, ...start], ending(listing, 1, count - 1))
    return row && { at: row['at'] as SQLInputValue, id: row['id'] as string }
  }
  if (others.length === 0) {
    let toSkip = offset
    for (; toSkip > SKIP; toSkip -= SKIP) {
      const place = placeAfter(SKIP)
      if (!place) return []
      start = [beyond(listing, place)]
      yield
    }
    const end = ending(listing, limit, toSkip)
    return select(read, '*', from, [...keys, ...start], end).map(headFrom)
  }
  const changeBefore = lastChange(listing)
  const most = Math.min(offset + limit, mostOf(listing))
  const headsById = new Map<string, ThreadHead>()
  if (most === 0) return []
  let size = Math.min(Math.max(2 * (offset + limit), 50), SLICE)
  for (let pauses = 0; ; pauses++) {
    const place = placeAfter(size)
    const stop = place ? [upTo(listing, place)] : []
    const end = ending(listing, most - headsById.size)
    for (const row of select(read, '*', from, [...keys, ...start, ...stop, ...others], end))
      headsById.set(row['id'] as string, headFrom(row))
    if (!place || headsById.size >= most) {
      if (pauses > 0)
        for (const head of movedSince(listing, changeBefore)) headsById.set(head.id, head)
      const sort = query.changedAfter ? undefined : orders[query.sort ?? 'activity']
      const heads = [...headsById.values()]
      return (sort ? heads.toSorted(sort) : heads).slice(offset, offset + limit)
    }
    start = [beyond(listing, place)]
    size = SLICE
    yield
  }
}

/** Returns how many threads can match at most: the store counts the threads of each lifecycle, over all tenants. */
function mostOf({ read, query: { lifecycle } }: Listing): number {
  if (lifecycle === undefined) return Infinity
  const [row] = read(
    'SELECT value FROM counters WHERE name = ?',
    `${LIFECYCLE_COUNTER}${lifecycle}`,
  )
  return Number(row?.['value'] ?? 0)
}

/** Returns the number of the last change in the tenant. */
function lastChange({ read, query: { tenant } }: Listing): number {
  if (tenant === undefined) return 0
  const key = [{ text: 'tenant = ?', values: [tenant] }]
  const end = { text: 'ORDER BY change DESC, id DESC LIMIT 1', values: [] }
  const [row] = select(read, 'change', 'threads INDEXED BY threads_by_change', key, end)
  return Number(row?.['change'] ?? 0)
}

/**
 * Returns the threads of a list that changed while it was read in parts: activity moves a thread to the front, to
 * places that were read before.
 */
function movedSince(listing: Listing, change: number): ThreadHead[] {
  const { read, query, conditions, order } = listing
  if (order !== 'activity' || query.tenant === undefined) return []
  const later = { text: 'change > ?', values: [change] }
  const where = [...conditions, later, ...beginning(listing)]
  const end = { text: 'LIMIT ?', values: [MOST_SORTED] }
  return select(read, '*', 'threads INDEXED BY threads_by_change', where, end).map(headFrom)
}

/** Where a list is in its order: the value of the order's column, and the id. */
interface Place {
  readonly at: SQLInputValue
  readonly id: string
}

/** The condition with which the query itself begins in the middle of the list. */
function beginning(listing: Listing): readonly Sql[] {
  const { after, changedAfter } = listing.query
  if (changedAfter) return [beyond(listing, { at: changedAfter.change, id: changedAfter.id })]
  return after ? [beyond(listing, after)] : []
}

function beyond({ order, isDescending }: Listing, { at, id }: Place): Sql {
  return { text: `(${COLUMNS[order]}, id) ${isDescending ? '<' : '>'} (?, ?)`, values: [at, id] }
}

function upTo({ order, isDescending }: Listing, { at, id }: Place): Sql {
  return { text: `(${COLUMNS[order]}, id) ${isDescending ? '>=' : '<='} (?, ?)`, values: [at, id] }
}

function ending({ order, isDescending }: Listing, limit: number, offset = 0): Sql {
  const direction = isDescending ? ' DESC' : ''
  return {
    text: `ORDER BY ${COLUMNS[order]}${direction}, id${direction} LIMIT ? OFFSET ?`,
    values: [limit, offset],
  }
}

function select(
  read: ReadRows,
  columns: string,
  from: string,
  where: readonly Sql[],
  end: Sql,
): Row[] {
  const conditions = where.map(({ text }) => text).join(' AND ')
  const values = where.flatMap((one) => one.values)
  return read(
    `SELECT ${columns} FROM ${from}${conditions && ` WHERE ${conditions}`} ${end.text}`,
    ...values,
    ...end.values,
  )
}

/**
 * Lifecycles that have an index by activity. The index of all threads finds the others: most threads are `idle`, and
 * those that are queued or run are among the latest.
 */
const RESTING: ReadonlySet<ThreadLifecycle> = new Set([
  'waiting',
  'stopped',
  'failed',
  'terminated',
  'erased',
])

/** Returns the conditions of a query, except for the place where it begins. */
function conditionsOf(query: ThreadQuery): Condition[] {
  const { tenant, owner, agent, lifecycle, parentId, rootId, isWaiting, search, tag } = query
  const { forkedFrom, tool, grantedAfter, idPart } = query
  const conditions: Condition[] = []
  const add = (about: Subject, text: string, ...values: SQLInputValue[]): void =>
    void conditions.push({ about, text, values })
  if (tenant !== undefined) add('tenant', 'tenant = ?', tenant)
  if (owner !== undefined) add('owner', 'owner = ?', owner)
  if (agent !== undefined) add('other', 'agent = ?', agent)
  if (lifecycle !== undefined) addLifecycle(lifecycle, add)
  if (parentId === null) add('other', 'parent_id IS NULL')
  else if (parentId !== undefined) add('parent', 'parent_id = ?', parentId)
  if (rootId !== undefined) add('root', 'root_id = ?', rootId)
  if (isWaiting === true) add('waiting', 'waiting > 0')
  if (isWaiting === false) add('other', 'waiting <= 0')
  if (search !== undefined) add('other', 'instr(search, ?) > 0', search.toLowerCase())
  if (idPart) add('other', isPartOf('id'), idPart, idPart, idPart, idPart)
  if (tag !== undefined)
    add('tag', 'EXISTS (SELECT 1 FROM json_each(tags) WHERE json_each.value = ?)', tag)
  if (tool !== undefined) {
    const isCaller = 'EXISTS (SELECT 1 FROM thread_tools AS called WHERE tool = ?'
    const own = `${isCaller} AND called.thread_id = threads.id)`
    add('tool', `(${own} OR ${isCaller} AND called.root_id = threads.id))`, tool, tool)
  }
  if (grantedAfter !== undefined) add('grant', 'granted_until > ?', grantedAfter)
  if (forkedFrom !== undefined) add('fork', 'forked_from = ?', forkedFrom)
  return conditions
}

/** The condition that a column begins or ends with a text; it takes the text four times. */
export function isPartOf(column: string): string {
  return `(substr(${column}, 1, length(?)) = ? OR substr(${column}, -length(?)) = ?)`
}

/** SQLite uses a partial index only if the statement repeats the condition of the index, with literal values. */
function addLifecycle(
  lifecycle: ThreadLifecycle,
  add: (about: Subject, text: string, ...values: SQLInputValue[]) => void,
): void {
  if (!RESTING.has(lifecycle)) return add('other', 'lifecycle = ?', lifecycle)
  const list = Array.from(RESTING, (one) => `'${one}'`).join(', ')
  add('resting', `lifecycle = '${lifecycle}' AND lifecycle IN (${list})`)
}
