import { answerToApproval } from './approval-answer.ts'
import type { DrainContext } from '../context/drain-context.ts'
import type { CallState } from '../state/kernel-state.ts'
import type { ToolCall } from '@skein/ai'
import { type ApprovalAnswer, reason } from '@skein/governance'
import { findCall } from '../state/calls.ts'
import { governedCall } from './admit-call.ts'

/**
 * Tells the governor that the question about this call is withdrawn, so that a later
 * approval of it cannot be used.
 */
export async function withdraw(
  context: DrainContext,
  { call, interruptId }: CallState,
  reason: string,
): Promise<void> {
  const question = context.state.interrupts.get(interruptId ?? '')
  if (question?.interrupt.kind !== 'approval') return
  const answer = answerToApproval(question)
  const withdrawn = { type: 'deny', reason, by: { type: 'system', id: 'runtime' } } as const
  await withdrawReview(context, call, answer?.type === 'deny' ? answer : withdrawn)
}

/**
 * Denies a call whose approval was used before, so that its start could not be committed. The governor is
 * opened again from the log and gets the denial; otherwise the call would keep waiting for an approval.
 */
export async function refuseReplayed(context: DrainContext, call: ToolCall): Promise<void> {
  context.dropGovernor()
  await withdrawReview(context, call, { type: 'deny', reason: 'APPROVAL_REPLAYED' })
}

/** Ends the wait for an approval of a call that has failed before the governor could judge it again. */
export async function endReview(context: DrainContext, call: ToolCall, why: string): Promise<void> {
  const governor = await context.governor()
  const request = governedCall(context, asShown(context, call), call.toolName)
  const { type } = await governor.admit(request, { type: 'deny', reason: why })
  // The call needs no approval any more, and has not run.
  if (type === 'allow')
    await governor.settle(
      request.id,
      { type: 'error', reasons: [reason('SCHEMA_INVALID', call.toolName, why)], effect: 'absent' },
      request.turnId,
    )
}

/** Returns the call with the arguments that the person was shown, by which the governor knows it. */
function asShown({ state }: DrainContext, call: ToolCall): ToolCall {
  const { parsed } = findCall(state, call.toolCallId)?.call ?? {}
  return { ...call, arguments: parsed?.arguments ?? call.arguments }
}

/**
 * Ends the wait for an approval of a call that will not run. A call that needs no approval any more is left
 * alone.
 */
export async function withdrawReview(
  context: DrainContext,
  call: ToolCall,
  denied: Extract<ApprovalAnswer, { type: 'deny' }>,
): Promise<void> {
  const governor = await context.governor()
  const original = asShown(context, call)
  const { type } = await governor.admit(governedCall(context, original, call.toolName), denied)
  // The governor has admitted the call, but it will not run, so these records must not be committed.
  if (type === 'allow') context.dropGovernor()
}
