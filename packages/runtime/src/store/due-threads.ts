import { byId } from './select-threads.ts'
import type { ThreadHead } from './head.ts'

/**
 * Returns the ids of due threads in fair order: the longest waiting thread of each tenant, then the second of
 * each, and so on.
 */
export function dueThreads(heads: Iterable<ThreadHead>, now: number, limit: number): string[] {
  const due: { readonly id: string; readonly tenant: string; readonly wakeAt: number }[] = []
  for (const { id, tenant, wakeAt } of heads)
    if (wakeAt !== null && wakeAt <= now) due.push({ id, tenant, wakeAt })
  const ranks = new Map<string, number>()
  return due
    .toSorted((a, b) => a.wakeAt - b.wakeAt || byId(a, b))
    .map((thread) => {
      const rank = ranks.get(thread.tenant) ?? 0
      ranks.set(thread.tenant, rank + 1)
      return { ...thread, rank }
    })
    .toSorted((a, b) => a.rank - b.rank) // stable: threads of the same rank keep their order
    .slice(0, limit)
    .map(({ id }) => id)
}
