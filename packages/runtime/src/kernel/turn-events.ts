import type { RuntimeEvent } from '../event.ts'
import type { Side } from '../thread-state.ts'
import type { DrainContext } from './drain-context.ts'
import { stepStart } from './step-start.ts'

/** A turn and its first step. */
export function turnStart(context: DrainContext, side: Side): RuntimeEvent[] {
  const agentId = `${context.agent.name}/${side}`
  const turnId = context.environment.ids()
  const at = context.at()
  return [{ type: 'turn_start', at, turnId, agentId, side }, stepStart(context, { turnId, side })]
}

/** Ends the running step, if there is one. */
export function stepEnd(context: DrainContext): RuntimeEvent[] {
  const turn = context.state.session?.turn
  if (!turn?.step) return []
  return [{ type: 'step_end', at: context.at(), turnId: turn.id, stepId: turn.step.id }]
}

/** Ends the running turn, if there is one. */
export function turnEnd(
  context: DrainContext,
  outcome: 'completed' | 'interrupted' | 'failed',
  reason: string,
): RuntimeEvent[] {
  const turn = context.state.session?.turn
  if (!turn) return []
  return [{ type: 'turn_end', at: context.at(), turnId: turn.id, outcome, reason }]
}
