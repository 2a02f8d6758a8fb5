import type { Store, ThreadHead } from './store.ts'

const PAGE = 1000

/** A thread's children, grandchildren and so on; parents before their children. */
export async function descendantsOf(
  { store }: { readonly store: Pick<Store, 'list'> },
  { id, rootId }: Pick<ThreadHead, 'id' | 'rootId'>,
): Promise<readonly ThreadHead[]> {
  const tree: ThreadHead[] = []
  for (let offset = 0; ; offset += PAGE) {
    // By age, so that paging stays in step while threads work.
    const page = await store.list({ rootId, sort: 'oldest', limit: PAGE, offset })
    tree.push(...page)
    if (page.length < PAGE) break
  }
  const children = new Map<string, ThreadHead[]>()
  for (const head of tree) {
    if (head.parentId === null) continue
    const siblings = children.get(head.parentId) ?? []
    children.set(head.parentId, siblings)
    siblings.push(head)
  }
  const found = [...(children.get(id) ?? [])]
  // The list grows while it is walked: level by level.
  for (const head of found) found.push(...(children.get(head.id) ?? []))
  return found
}
