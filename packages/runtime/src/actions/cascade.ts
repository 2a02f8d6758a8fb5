import type { DrainContext } from '../context/drain-context.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { ThreadChange } from '../store/commit.ts'

/**
 * Terminates the children of a terminated thread; each child then terminates its own children. The list
 * of children is complete, because a terminated thread creates no more.
 */
export async function cascade(context: DrainContext, references: readonly string[]): Promise<void> {
  const at = context.at()
  const wake = { by: context.environment.clock.now() }
  const others: ThreadChange[] = []
  for (const id of references) {
    const head = await context.environment.store.head(id)
    if (!head || head.lifecycle === 'terminated' || head.lifecycle === 'erased') continue
    const append: RuntimeEvent[] = [{ type: 'thread_terminated', at }]
    others.push({ id, append, head: { lifecycle: 'terminated' }, wake })
  }
  const events = references.map(
    (reference) => ({ type: 'subagent_ended', at, reference, outcome: 'terminated' }) as const,
  )
  await context.commit('cascade', { kind: 'outcome', events, others })
}
