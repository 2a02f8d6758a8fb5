import { isStorable, pageOf, type ThreadQuery } from '@skein/runtime'
import type { Statement, Value } from './connections.ts'
import { isSettled } from './schema.ts'
import { partCondition } from './waiting.ts'
import { HEAD_COLUMNS } from './head-rows.ts'

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
    const threadsWithTool = (column: string): string =>
      `SELECT ${column} FROM ${s}.threads WHERE tools ? ${place}`
    return `id IN (${threadsWithTool('id')} UNION ${threadsWithTool('root_id')})`
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
