import type { SettledOutcome, ToolCall } from '@skein/ai'
import type { DrainContext } from '../context/drain-context.ts'
import type { FailureCause, RuntimeEvent } from '../contract/event.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import { toLogged } from '../state/calls.ts'
import { boundMessage } from '../state/step-decision.ts'

/** Returns the event that ends a call with its outcome. */
export function endEvent(
  context: DrainContext,
  call: ToolCall,
  outcome: SettledOutcome,
  cause?: FailureCause,
): Extract<RuntimeEvent, { type: 'tool_execution_end' }> {
  return {
    type: 'tool_execution_end',
    at: context.at(),
    turnId: context.state.session?.turn?.id ?? '',
    toolCallId: call.toolCallId,
    toolName: call.toolName,
    ...toLogged(outcome),
    ...(cause && { cause }),
  }
}

/**
 * Returns the event by which a successful call of the agent's status tool publishes a text about the progress
 * (Standard Agents §7.10).
 */
export function statusEvents(
  context: DrainContext,
  { sessionStatus }: ResolvedSide,
  { call, outcome }: { readonly call: ToolCall; readonly outcome: SettledOutcome },
): RuntimeEvent[] {
  if (sessionStatus?.name !== call.toolName || outcome.type !== 'done') return []
  const text = boundMessage({ call, outcome }, sessionStatus)
  return [{ type: 'status_changed', at: context.at(), status: 'running', text }]
}
