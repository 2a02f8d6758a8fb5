import { AssistantMessage, messageToJSON } from '@skein/ai'
import type { DrainContext } from '../context/drain-context.ts'
import { checksAnswers, type ResolvedSide } from '../definitions/resolved.ts'
import { afterStored, beforeCreate } from '../hooks/hooks.ts'
import { endSession } from '../session/end-session.ts'
import type { SideTurn, Step } from '../state/kernel-state.ts'
import type { ChosenRun } from '../state/chosen-run.ts'

/** Makes the tool call that a user's message asks for, as if a model had; ends the session when it has a result. */
export async function makeCall(
  context: DrainContext,
  side: ResolvedSide,
  { turn, step }: { readonly turn: SideTurn; readonly step: Step },
  { call, isCalled }: ChosenRun,
): Promise<void> {
  if (isCalled || !call)
    return endSession(context, { outcome: 'stopped', reason: 'called', message: '' })
  const { ids } = context.environment
  const at = context.at()
  const toolCall = { toolCallId: ids(), toolName: call.toolName, arguments: call.arguments }
  const request = new AssistantMessage('', [toolCall], { id: ids(), timestamp: new Date(at) })
  const answer = await beforeCreate(context, side, {
    type: 'message_added',
    at,
    turnId: turn.id,
    stepId: step.id,
    side: side.side,
    agentId: `${context.agent.name}/${side.side}`,
    message: messageToJSON(request),
    delivery: checksAnswers(context.agent) ? 'pending' : undefined,
  })
  await context.commit('handler_end', { kind: 'outcome', events: [answer] })
  await afterStored(context, side, [answer])
}
