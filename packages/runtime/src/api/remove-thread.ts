import type { ApiContext } from './api-context.ts'
import { terminatedTree } from './control.ts'
import type { ThreadHead } from '../store/head.ts'

/**
 * Terminates and removes a thread and its descendants, children before parents, so that a crash leaves no
 * orphans.
 */
export async function removeThread(context: ApiContext, threadId: string): Promise<void> {
  for (const head of await terminatedTree(context, threadId)) {
    await context.store.remove(head.id)
    context.folds.forget(head.id)
    tellRemoved(context, { ...head, lifecycle: 'erased' })
  }
}

/** Notifies readers and other nodes that a thread was removed or erased. */
export function tellRemoved({ live, node }: ApiContext, head: ThreadHead): void {
  live.removed(head)
  node?.removed(head)
}
