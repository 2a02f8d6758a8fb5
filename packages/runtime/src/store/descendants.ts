import { nextTurn } from './next-turn.ts'
import { placeOf } from './select-threads.ts'
import type { ListPlace } from './thread-query.ts'
import type { Store } from './store.ts'
import type { ThreadHead } from './head.ts'

const PAGE = 1000

/** Returns all descendants of a thread, parents before their children. */
export async function descendantsOf(
  { store }: { readonly store: Pick<Store, 'list'> },
  { id, rootId }: Pick<ThreadHead, 'id' | 'rootId'>,
): Promise<readonly ThreadHead[]> {
  // Most threads below a root have no children, and then the tree need not be read.
  if (id !== rootId && (await store.list({ parentId: id, sort: 'oldest', limit: 1 })).length === 0)
    return []
  return below(await treeOf(store, rootId), id)
}

/** Returns all threads of a tree, the oldest first. */
async function treeOf(store: Pick<Store, 'list'>, rootId: string): Promise<readonly ThreadHead[]> {
  const tree: ThreadHead[] = []
  for (let after: ListPlace | undefined; ;) {
    // Sorted by age, so that pages neither overlap nor skip threads while the threads change.
    const page = await store.list({ rootId, sort: 'oldest', limit: PAGE, after })
    tree.push(...page)
    const last = page.at(-1)
    if (!last || page.length < PAGE) return tree
    after = placeOf(last, 'oldest')
    await nextTurn()
  }
}

/** Selects from all threads of a tree the descendants of one thread, parents before their children. */
export function below(tree: readonly ThreadHead[], id: string): readonly ThreadHead[] {
  const children = new Map<string, ThreadHead[]>()
  for (const head of tree) {
    if (head.parentId === null) continue
    const siblings = children.get(head.parentId) ?? []
    children.set(head.parentId, siblings)
    siblings.push(head)
  }
  const descendants = [...(children.get(id) ?? [])]
  // The list grows while the loop runs, so that all levels are visited.
  for (const head of descendants) descendants.push(...(children.get(head.id) ?? []))
  return descendants
}
