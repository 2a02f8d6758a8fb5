import type { ListPlace, ThreadQuery } from './thread-query.ts'
import type { ThreadHead } from './head.ts'

/** Returns the text that searches match against, in lower case. */
export function searchText(head: ThreadHead): string {
  const words = head.firstWords === null ? [] : [head.firstWords]
  return [head.id, head.title ?? '', head.agent, head.clientId ?? '', ...head.tags, ...words]
    .join('\n')
    .toLowerCase()
}

/** Selects and sorts the heads for a query. */
export function selectThreads(
  heads: Iterable<ThreadHead>,
  query: ThreadQuery,
): readonly ThreadHead[] {
  const { limit, offset } = pageOf(query)
  const { tenant, owner, agent, lifecycle, parentId, rootId, isWaiting, search, tag } = query
  const { forkedFrom, changedAfter, tool, grantedAfter, after, idPart } = query
  const all = [...heads]
  const callers = tool === undefined ? [] : all.filter(({ tools }) => tools.includes(tool))
  const ids = new Set(callers.flatMap(({ id, rootId }) => [id, rootId]))
  const matches = (head: ThreadHead): boolean =>
    (tenant === undefined || head.tenant === tenant) &&
    (owner === undefined || head.owner === owner) &&
    (agent === undefined || head.agent === agent) &&
    (lifecycle === undefined || head.lifecycle === lifecycle) &&
    (parentId === undefined || head.parentId === parentId) &&
    (rootId === undefined || head.rootId === rootId) &&
    (isWaiting === undefined || head.waiting > 0 === isWaiting) &&
    (search === undefined || searchText(head).includes(search.toLowerCase())) &&
    (idPart === undefined || isPart(idPart, head.id)) &&
    (tag === undefined || head.tags.includes(tag)) &&
    (tool === undefined || ids.has(head.id)) &&
    (grantedAfter === undefined || (head.grantedUntil ?? 0) > grantedAfter) &&
    (forkedFrom === undefined || head.forkedFrom?.threadId === forkedFrom) &&
    (changedAfter === undefined || byChange(changedAfter, head) < 0) &&
    (after === undefined || order(headAt(after), head) < 0)
  const order = changedAfter ? byChange : orders[query.sort ?? 'activity']
  return all
    .filter(matches)
    .toSorted(order)
    .slice(offset, offset + limit)
}

/** Whether an id begins or ends with a text. */
export function isPart(part: string, id: string): boolean {
  return id.startsWith(part) || id.endsWith(part)
}

/** Returns limit and offset of a query: 50 entries by default, at most 1000. */
export function pageOf({ limit = 50, offset = 0 }: ThreadQuery): { limit: number; offset: number } {
  return {
    limit: Math.min(Math.max(Math.trunc(limit), 0), 1000),
    offset: Math.max(Math.trunc(offset), 0),
  }
}

/**
 * Returns the place of a thread in an order, from which the next page of a list continues (`ThreadQuery.after`). Times
 * are numbers in stores and texts in the API.
 */
export function placeOf(
  thread: { readonly id: string } & Readonly<Record<'updatedAt' | 'createdAt', number | string>>,
  sort: Exclude<ThreadQuery['sort'], 'change'> = 'activity',
): ListPlace {
  const at = sort === 'activity' ? thread.updatedAt : thread.createdAt
  return { at: typeof at === 'number' ? at : Date.parse(at), id: thread.id }
}

type Ordered = Pick<ThreadHead, 'id' | 'updatedAt' | 'createdAt' | 'change'>

/** A head at a place, for comparisons in any order. */
function headAt({ at, id }: ListPlace): Ordered {
  return { id, updatedAt: at, createdAt: at, change: at }
}

/** Compares threads in each order. */
export const orders: Readonly<
  Record<NonNullable<ThreadQuery['sort']>, (a: Ordered, b: Ordered) => number>
> = {
  activity: (a, b) => b.updatedAt - a.updatedAt || byId(b, a),
  created: (a, b) => b.createdAt - a.createdAt || byId(b, a),
  oldest: (a, b) => a.createdAt - b.createdAt || byId(a, b),
  change: (a, b) => byChange(b, a),
}

type Place = Pick<ThreadHead, 'change' | 'id'>

function byChange(a: Place, b: Place): number {
  return a.change - b.change || byId(a, b)
}

/** Orders by id. */
export function byId(a: { readonly id: string }, b: { readonly id: string }): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0
}
