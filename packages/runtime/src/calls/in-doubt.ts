import { settleUnknownEffect as settle } from '../governance/in-doubt.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { DrainContext } from '../contract/context.ts'
import { sideOf } from '../contract/state.ts'
import type { CallState } from '../contract/state.ts'
import type { ToolDefinition } from '../definitions/types.ts'
import { callIdOf } from '../fold/calls.ts'

/**
 * Settles calls that were running when a process died: checks whether the effect happened, runs the call
 * again, asks a person, or tells the model that the outcome is unknown.
 */
export async function settleInDoubt(
  context: DrainContext,
  calls: readonly CallState[],
): Promise<void> {
  for (const call of calls) {
    const event = await settled(context, call)
    // Running a call again does not count as progress. Otherwise a call that crashes every process would be
    // repeated for ever.
    await context.commit('in_doubt', { events: [event], isProgress: event.type !== 'call_reset' })
  }
}

async function settled(context: DrainContext, { call }: CallState): Promise<RuntimeEvent> {
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
    args: call.arguments,
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
  const outcome = result.type === 'done' ? 'success' : 'unknown'
  return { type: 'tool_execution_end', ...base, toolName, outcome, result: result.message }
}

/**
 * Stands for a tool that a deploy has removed while a call of it ran. It may have been a write, and nobody can
 * ask it, so the outcome of the call is unknown.
 */
function goneTool(name: string): ToolDefinition {
  const governance = { risk: 'write_low_risk' } as const
  return { kind: 'tool', name, description: '', parameters: {}, governance }
}
