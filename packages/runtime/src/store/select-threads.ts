import type { ThreadHead, ThreadQuery } from './store.ts'
import { searchText } from './thread-head.ts'

/** The heads that a query asks for, in its order. */
export function selectThreads(
  heads: Iterable<ThreadHead>,
  query: ThreadQuery,
): readonly ThreadHead[] {
  const { limit, offset } = pageOf(query)
  return [...heads]
    .filter((head) => matches(head, query))
    .toSorted(orders[query.sort ?? 'activity'])
    .slice(offset, offset + limit)
}

/** The part of a list that a query asks for: 50 by default, never more than 1000. */
export function pageOf({ limit = 50, offset = 0 }: ThreadQuery): { limit: number; offset: number } {
  return {
    limit: Math.min(Math.max(Math.trunc(limit), 0), 1000),
    offset: Math.max(Math.trunc(offset), 0),
  }
}

function matches(head: ThreadHead, query: ThreadQuery): boolean {
  const { tenant, owner, agent, lifecycle, parentId, rootId, isWaiting, search, tag } = query
  return (
    (tenant === undefined || head.tenant === tenant) &&
    (owner === undefined || head.owner === owner) &&
    (agent === undefined || head.agent === agent) &&
    (lifecycle === undefined || head.lifecycle === lifecycle) &&
    (parentId === undefined || head.parentId === parentId) &&
    (rootId === undefined || head.rootId === rootId) &&
    (isWaiting === undefined || head.waiting > 0 === isWaiting) &&
    (search === undefined || searchText(head).includes(search.toLowerCase())) &&
    (tag === undefined || head.tags.includes(tag))
  )
}

const orders: Readonly<
  Record<NonNullable<ThreadQuery['sort']>, (a: ThreadHead, b: ThreadHead) => number>
> = {
  activity: (a, b) => b.updatedAt - a.updatedAt || byId(b, a),
  created: (a, b) => b.createdAt - a.createdAt || byId(b, a),
  oldest: (a, b) => a.createdAt - b.createdAt || byId(a, b),
}

function byId(a: ThreadHead, b: ThreadHead): number {
  return a.id < b.id ? -1 : a.id > b.id ? 1 : 0
}
