import type { RuntimeEvent } from '../event.ts'
import type { ThreadChange } from '../store/store.ts'
import type { DrainContext } from './drain-context.ts'

/** A waiting call that nobody answered is told to the model. */
export async function expire(context: DrainContext, interruptId: string): Promise<void> {
  const answer = { type: 'error', message: 'Nobody answered in time.' } as const
  const events = [{ type: 'interrupt_answered' as const, at: context.at(), interruptId, answer }]
  await context.commit('expire', { events, isProgress: true })
}

/** Terminates children, each with its own descendants in turn. Nothing can be attached meanwhile. */
export async function cascade(context: DrainContext, references: readonly string[]): Promise<void> {
  const at = context.at()
  const now = context.environment.clock.now()
  const others: ThreadChange[] = []
  for (const id of references) {
    const head = await context.environment.store.head(id)
    if (!head || head.lifecycle === 'terminated' || head.lifecycle === 'erased') continue
    const append: RuntimeEvent[] = [{ type: 'thread_terminated', at }]
    others.push({
      id,
      append,
      raisesEpoch: true,
      head: { lifecycle: 'terminated' },
      wake: { by: now },
    })
  }
  const events = references.map(
    (reference) => ({ type: 'subagent_ended', at, reference, outcome: 'terminated' }) as const,
  )
  await context.commit('cascade', { events, others, isProgress: true })
}
