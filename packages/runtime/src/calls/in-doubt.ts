import { settleInDoubt as settle } from '../governance/in-doubt.ts'
import type { RuntimeEvent } from '../event.ts'
import type { DrainContext } from '../context.ts'
import { sideOf } from '../next.ts'
import type { CallState } from '../state.ts'
import { callIdOf, UNKNOWN_OUTCOME } from '../fold/calls.ts'

/** Settles calls that ran when a process died: look, run again, ask, or say that nobody knows. */
export async function settleInDoubt(
  context: DrainContext,
  calls: readonly CallState[],
): Promise<void> {
  for (const call of calls) {
    const events = await eventsOf(context, call)
    // A call that ends every process it runs in must not be run for ever.
    const isProgress = !events.some(({ type }) => type === 'call_reset')
    await context.commit('in_doubt', { events, isProgress })
  }
}

async function eventsOf(context: DrainContext, { call }: CallState): Promise<RuntimeEvent[]> {
  const { state, agent, head, signal, environment } = context
  const turn = state.session!.turn! // calls in doubt belong to the running turn
  const { toolCallId, toolName } = call
  const at = context.at()
  const found = sideOf(agent, turn).prompt.tools.find(({ name }) => name === toolName)
  const tool = found?.kind === 'tool' && found.tool.run ? found.tool : undefined
  // What the runtime itself does for a call is part of a commit: if that is not there, nothing happened.
  if (!tool) return [again(context, call, turn.id)]
  const callId = callIdOf(state, toolCallId)
  const governor = await context.governor()
  const result = await settle({
    tool,
    callId,
    args: call.arguments,
    governor,
    context: { signal, idempotencyKey: `${head.id}/${callId}` },
  })
  switch (result.type) {
    case 'rerun':
      return [again(context, call, turn.id)]
    case 'ask': {
      const interrupt = {
        id: environment.ids(),
        toolCallId,
        kind: 'input' as const,
        request: result.request,
      }
      return [{ type: 'interrupt_opened', at, turnId: turn.id, interrupt }]
    }
    case 'done':
      return [
        {
          type: 'tool_execution_end',
          at,
          turnId: turn.id,
          toolCallId,
          toolName,
          outcome: 'success',
          result: result.message,
        },
      ]
    case 'unknown':
      return [
        {
          type: 'tool_execution_end',
          at,
          turnId: turn.id,
          toolCallId,
          toolName,
          outcome: 'unknown',
          result: result.message ?? UNKNOWN_OUTCOME,
        },
      ]
  }
}

/** Back to the state before it started. */
function again(
  context: DrainContext,
  { toolCallId }: CallState['call'],
  turnId: string,
): RuntimeEvent {
  return { type: 'call_reset', at: context.at(), turnId, toolCallId }
}
