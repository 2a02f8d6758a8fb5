import type { ApiContext } from './api-context.ts'
import { terminatedTree } from './control.ts'
import { erasedEvent } from './erased-event.ts'
import { tellRemoved } from './remove-thread.ts'
import type { RuntimeEvent } from '../contract/event.ts'

/**
 * Removes the contents of a thread and its descendants. The remaining events still show that something
 * happened, when, by which agent and at what cost, but contain nothing that was said.
 */
export async function eraseThread(
  context: ApiContext,
  threadId: string,
  { by }: { readonly by?: string } = {},
): Promise<void> {
  for (const head of await terminatedTree(context, threadId)) {
    if (head.lifecycle === 'erased') continue
    const events = await context.store.events(head.id)
    const at = context.at()
    // The owner is forgotten, so events do not name the owner either.
    const named = (actor: string | undefined): string | undefined =>
      actor === head.owner ? undefined : actor
    const skeleton: RuntimeEvent[] = [
      ...events
        .flatMap(({ event }) => erasedEvent(event))
        .map((event) =>
          event.type === 'thread_terminated' ? { ...event, by: named(event.by) } : event,
        ),
      { type: 'thread_erased', at, eventCount: events.length, by: named(by) },
    ]
    await context.store.erase(head.id, skeleton)
    context.folds.forget(head.id)
    const skeletonHead = await context.store.head(head.id)
    tellRemoved(context, skeletonHead ?? { ...head, lifecycle: 'erased' })
  }
}
