import type { JsonValue } from '@skein/base'
import { type GovernedOutcome, reason } from '@skein/governance'
import type { DrainContext } from '../context/drain-context.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { CallState } from '../state/kernel-state.ts'
import { callIdOf } from '../state/calls.ts'
import type { SessionGovernor } from '../governance/session-governor.ts'

/**
 * Returns the event that ends a call without an outcome with the result that it has reported late. The governor
 * records the result with its next writes.
 */
export async function endLate(
  context: DrainContext,
  one: CallState,
  governor: SessionGovernor | undefined,
): Promise<RuntimeEvent> {
  const { state } = context
  const { toolCallId, toolName } = one.call
  const turnId = state.session?.turn?.id ?? ''
  if (governor) await settleLate(context, one, { governor, turnId })
  const { outcome, result } = one.late! // the caller has checked that there is one
  const at = context.at()
  return { type: 'tool_execution_end', at, turnId, toolCallId, toolName, outcome, result }
}

/**
 * Has the governor record what was found out about calls of the running session after their outcomes were recorded as
 * unknown, so that these calls are not in doubt when the result of the session is judged.
 */
export async function settleLateCalls(context: DrainContext): Promise<void> {
  const { session, entries } = context.state
  if (!session?.isGoverned) return
  for (const { calls, turnId } of entries.slice(session.firstEntry))
    for (const one of calls)
      if (one.isUnknown && governedOutcome(one))
        await settleLate(context, one, { governor: await context.governor(), turnId })
}

async function settleLate(
  { state }: DrainContext,
  one: CallState,
  { governor, turnId }: { readonly governor: SessionGovernor; readonly turnId: string },
): Promise<void> {
  const outcome = governedOutcome(one)
  if (outcome) await governor.settleLate(callIdOf(state, one.call.toolCallId), outcome, turnId)
}

/** Returns what the governor records about a late result, or about what a person has found out; undefined if neither. */
function governedOutcome({
  call: { toolName },
  late,
  found,
}: CallState): GovernedOutcome | undefined {
  if (late?.outcome === 'success') return { type: 'result', value: late.result as JsonValue } // the log is JSON
  if (found)
    return {
      type: 'error',
      reasons: [reason('TOOL_IN_DOUBT', toolName, `found ${found}`)],
      effect: found,
    }
  if (!late) return undefined
  const reasons = [reason('TOOL_ERROR', toolName, String(late.result))]
  return { type: 'error', reasons, effect: 'in_doubt' }
}
