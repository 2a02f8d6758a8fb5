import { withdraw } from '../calls/withdraw.ts'
import type { DrainContext } from '../context/drain-context.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import { settleUnknownEffect as settle } from '../governance/in-doubt.ts'
import { endLate } from '../session/late.ts'
import { goneTool } from '../session/open-calls.ts'
import { argumentsToRun, callIdOf } from '../state/calls.ts'
import { type CallState, sideOf } from '../state/kernel-state.ts'

/**
 * Settles calls that were running when a process died: uses a result that came late, checks whether the effect
 * happened, runs the call again, asks a person, or tells the model that the outcome is unknown.
 */
export async function settleInDoubt(
  context: DrainContext,
  calls: readonly CallState[],
): Promise<void> {
  for (const call of calls) {
    const event = await settled(context, call)
    // Running a call again does not count as progress. Otherwise a call that crashes every process would be
    // repeated for ever.
    const kind = event.type === 'call_reset' ? 'change' : 'outcome'
    await context.commit('in_doubt', { kind, events: [event] })
  }
}

async function settled(context: DrainContext, one: CallState): Promise<RuntimeEvent> {
  if (one.late) {
    await withdraw(context, one, 'The call has ended after all.')
    return endLate(context, one, await context.governor())
  }
  const { call } = one
  const { state, agent, head, signal, environment } = context
  const turn = state.session!.turn! // calls in doubt belong to the running turn
  const { toolCallId, toolName } = call
  const base = { at: context.at(), turnId: turn.id, toolCallId }
  const side = sideOf(agent, turn)
  const found = side.prompt.tools.find(({ name }) => name === toolName)
  // The runtime's own tools only change the thread in the commit of their outcome, which did not happen, so
  // they can run again.
  const isGone = !found && !context.tools(side).some(({ name }) => name === toolName)
  const tool = isGone ? goneTool(toolName) : found?.kind === 'tool' ? found.tool : undefined
  if (!tool || (!isGone && !tool.run)) return { type: 'call_reset', ...base }
  const callId = callIdOf(state, toolCallId)
  const result = await settle({
    tool,
    callId,
    args: argumentsToRun(one),
    governor: await context.governor(),
    context: { signal, idempotencyKey: `${head.id}/${callId}` },
  })
  if (result.type === 'rerun') return { type: 'call_reset', ...base }
  if (result.type === 'ask') {
    const { at, turnId } = base
    const { request } = result
    const interrupt = { id: environment.ids(), toolCallId, kind: 'in_doubt', request } as const
    return { type: 'interrupt_opened', at, turnId, interrupt }
  }
  const end = { type: 'tool_execution_end', ...base, toolName, result: result.message } as const
  return result.type === 'done'
    ? { ...end, outcome: 'success', settledBy: 'probe' }
    : { ...end, outcome: 'unknown' }
}
