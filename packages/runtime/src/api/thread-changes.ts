import type { ApiContext } from './api-context.ts'
import { threadInfos } from './thread-info.ts'
import { waitingItems } from './waiting-lists.ts'
import { RuntimeError } from '../contract/error.ts'
import type { Threads } from '../contract/threads.ts'
import type { WaitingItem } from '../contract/waiting-item.ts'
import { removalsOf } from '../store/store.ts'
import type { ThreadHead } from '../store/head.ts'

type ChangesQuery = NonNullable<Parameters<Threads['changes']>[0]>

type ChangesPage = ReturnType<Threads['changes']> extends AsyncIterable<infer Page> ? Page : never

const CHANGES_PAGE = 100

/** How far a reader has read the changes of a tenant's threads, and how many threads had been removed by then. */
interface ChangesPosition {
  readonly change: number
  readonly removals: number
  /**
   * The id of the last thread that was read among those with this change number; empty if all were read. It
   * is always a thread that the reader may see.
   */
  readonly id: string
}

/** Yields the changed threads of a tenant: see `Threads.changes`. */
export async function* changedThreads(
  context: ApiContext,
  { tenant = 'default', owner, after, signal }: ChangesQuery = {},
): AsyncGenerator<ChangesPage, void, undefined> {
  const { store } = context
  let position = after === undefined ? undefined : parsePosition(after)
  let isFirst = true
  for await (const _ of context.live.rings({ signal })) {
    for (;;) {
      // The latest change is read before the list, so that the position also moves past changes of other
      // owners' threads.
      const name = removalsOf(tenant)
      const removals = (await store.counters(name)).get(name) ?? 0
      const [latest] = await store.list({ tenant, sort: 'change', limit: 1 })
      const now = { change: latest?.change ?? 0, removals, id: '' }
      const from = position ?? now
      // A change number that this store has not used yet is from another store, or from before a backup was restored.
      const isReset = from.removals !== removals || from.change > now.change
      const changedAfter = { change: from.change + (from.id === '' ? 1 : 0), id: from.id }
      const query = { tenant, owner, changedAfter, limit: CHANGES_PAGE }
      const heads = isReset ? [] : await store.list(query)
      const isFull = heads.length === CHANGES_PAGE
      const last = heads.at(-1)
      const isLater = last !== undefined && (isFull || last.change > now.change)
      position = isLater ? { change: last.change, removals, id: last.id } : now
      if (heads.length > 0 || isReset || isFirst)
        yield {
          position: formatted(position),
          isReset: isReset || undefined,
          threads: await shownChanges(context, heads),
        }
      if (isFull) continue
      // A page without threads tells the reader that it is up to date.
      if (isFirst && (heads.length > 0 || isReset))
        yield { position: formatted(position), threads: [] }
      isFirst = false
      break
    }
  }
}

function formatted({ change, removals, id }: ChangesPosition): string {
  return `${change}:${removals}:${id}`
}

function parsePosition(text: string): ChangesPosition {
  const [, change, removals, id] = /^(\d{1,15}):(\d{1,15}):(.{0,200})$/s.exec(text) ?? []
  if (id !== undefined) return { change: Number(change), removals: Number(removals), id }
  throw new RuntimeError('The position is not one of the changes of threads.', {
    code: 'INPUT_INVALID',
    hint: 'Pass the position of the last change that you have, or none to begin with the present.',
  })
}

/** Returns changed threads, and the roots of their trees, because the sums of costs in a root change, too. */
async function shownChanges(
  context: ApiContext,
  heads: readonly ThreadHead[],
): Promise<ChangesPage['threads']> {
  const all = new Map(heads.map((head) => [head.id, head]))
  for (const { rootId } of heads) {
    const root = all.has(rootId) ? undefined : await context.store.head(rootId)
    if (root) all.set(root.id, root)
  }
  const waiting = new Map<string, Promise<readonly WaitingItem[]>>()
  const threads = [...all.values()]
  for (const { rootId } of threads.filter((head) => head.waiting > 0))
    if (!waiting.has(rootId)) waiting.set(rootId, waitingItems(context, { rootId }))
  const infos = await threadInfos(context, threads)
  return Promise.all(
    infos.map(async (thread) => {
      const items = (await waiting.get(thread.rootId)) ?? []
      return { thread, waiting: items.filter(({ threadId }) => threadId === thread.id) }
    }),
  )
}
