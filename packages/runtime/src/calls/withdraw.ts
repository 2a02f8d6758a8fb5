import { answerToApproval, withdrawReview } from './gate.ts'
import type { DrainContext } from '../context/drain-context.ts'
import type { CallState } from '../state/kernel-state.ts'

/**
 * Tells the governor, which judges calls, that the question about this call is withdrawn, so that a later
 * approval of it cannot be used.
 */
export async function withdraw(
  context: DrainContext,
  { call, interruptId }: CallState,
  reason: string,
): Promise<void> {
  const asked = context.state.interrupts.get(interruptId ?? '')
  if (asked?.interrupt.kind !== 'approval') return
  const answer = answerToApproval(asked)
  const withdrawn = { type: 'deny', reason, by: { type: 'system', id: 'runtime' } } as const
  await withdrawReview(context, call, answer?.type === 'deny' ? answer : withdrawn)
}
