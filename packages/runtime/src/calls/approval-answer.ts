import type { ApprovalAnswer } from '@skein/governance'
import type { DrainContext } from '../context/drain-context.ts'
import type { OpenInterrupt } from '../state/kernel-state.ts'
import { findCall } from '../state/calls.ts'

export function approvalAnswer(
  { state }: DrainContext,
  toolCallId: string,
): ApprovalAnswer | undefined {
  const interruptId = findCall(state, toolCallId)?.call.interruptId
  const open = interruptId === undefined ? undefined : state.interrupts.get(interruptId)
  return open && answerToApproval(open)
}

/** Converts a person's answer to the form that the governor of calls reads; undefined when there is no decision. */
export function answerToApproval({
  interrupt,
  answer,
  answeredBy: id,
}: OpenInterrupt): ApprovalAnswer | undefined {
  // The answer to another question, e.g. whether an interrupted call had its effect, approves and denies
  // nothing.
  if (interrupt.kind !== 'approval') return undefined
  const by = id === undefined ? undefined : { type: 'human' as const, id }
  if (answer?.type === 'deny') return { type: 'deny', reason: answer.reason ?? 'denied', by }
  if (answer?.type === 'error') return { type: 'deny', reason: answer.message }
  if (answer?.type !== 'approve') return undefined
  const tokens = [answer.token ?? []].flat().filter((token) => typeof token === 'string')
  return { type: 'approve', tokens }
}
