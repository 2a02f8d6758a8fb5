import { AssistantMessage, messageToJSON, type Turn } from '@skein/ai'
import type { DrainContext } from '../context/drain-context.ts'
import { checksAnswers } from '../definitions/resolved.ts'
import type { RuntimeMessageAdded } from '../contract/event.ts'
import { beforeCreate } from '../hooks/hooks.ts'
import { costOf, toThreadUsage } from '../contract/usage.ts'
import { OwnCallIds } from './own-call-ids.ts'
import type { Asking } from './asking.ts'

/** Converts an answer to an event of the log. Reasoning is removed if the prompt excludes it. */
export async function answerOf(
  context: DrainContext,
  { side, turn: sideTurn, step, model, asked }: Asking,
  { turn, callIds }: { readonly turn: Turn; readonly callIds?: OwnCallIds },
): Promise<RuntimeMessageAdded> {
  let { response } = turn
  if (side.prompt.definition.reasoning?.exclude) {
    const content = response.content.filter(({ type }) => type !== 'reasoning')
    const { id, timestamp, metadata, toolCalls } = response
    response = new AssistantMessage(content, toolCalls, { id, timestamp, metadata })
  }
  const answer: RuntimeMessageAdded = {
    type: 'message_added',
    at: context.at(),
    turnId: sideTurn.id,
    stepId: step.id,
    side: side.side,
    agentId: `${context.agent.name}/${side.side}`,
    message: messageToJSON(response),
    delivery: checksAnswers(context.agent) ? 'pending' : undefined,
    modelName: model.model.modelId,
    providerName: model.model.provider.name,
    finishReason: turn.stopReason,
    usage: toThreadUsage(turn.usage),
    costUsd: costOf(model, turn.usage),
  }
  if (asked?.isPrivate) return answer
  if (!callIds) return beforeCreate(context, side, answer)
  // A hook may add calls or change their ids, so ids are made unique after the hooks too.
  const own = { ...answer, message: callIds.inMessage(answer.message) }
  const result = await beforeCreate(context, side, own)
  return result === own ? own : { ...result, message: callIds.inMessage(result.message) }
}
