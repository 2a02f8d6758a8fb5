import type { DrainContext } from '../context/drain-context.ts'

/** Answers an interrupt that has expired with an error, which the model gets as the call's result. */
export async function expire(context: DrainContext, interruptId: string): Promise<void> {
  const answer = { type: 'error', message: 'Nobody answered in time.' } as const
  const events = [{ type: 'interrupt_answered' as const, at: context.at(), interruptId, answer }]
  await context.commit('expire', { kind: 'outcome', events })
}
