import { AgentState } from '@skein/agents'
import { step } from '@skein/agents/execution'
import {
  AssistantMessage,
  messageToJSON,
  type LLMInstance,
  type Message,
  type Turn,
} from '@skein/ai'
import type { ResolvedModel, ResolvedSide } from '../definitions/resolved.ts'
import type { RuntimeMessageAdded } from '../event.ts'
import type { DrainContext } from './drain-context.ts'
import { LiveStep } from './live-step.ts'
import { logAnswer, type LoggedRequest } from './log-request.ts'
import { modelFailed } from './model-failure.ts'
import { costOf } from './model-options.ts'
import { tellCreated, withHooks } from './queue.ts'
import type { Step, Turn as SideTurn } from './state.ts'
import type { Toolset } from './toolset.ts'
import { toUsage } from './usage.ts'

/** A request that is ready to be sent. */
export interface Prepared {
  readonly instance: LLMInstance
  readonly messages: readonly Message[]
  readonly tools: Toolset
  readonly log: LoggedRequest
}

export interface Asking extends Prepared {
  readonly side: ResolvedSide
  readonly turn: SideTurn
  readonly step: Step
  readonly model: ResolvedModel
}

/** Asks the model and commits its answer, or what became of the try. */
export async function askModel(context: DrainContext, asking: Asking): Promise<void> {
  const live = new LiveStep(context, asking.turn.id)
  try {
    const turn = await think(context, asking, live)
    live.end()
    await commitAnswer(context, asking, turn, live)
  } catch (error) {
    live.end()
    await modelFailed(context, asking, error)
  }
}

/** Through the step engine, so that a side of a thread and an agent in a program think alike. */
async function think(context: DrainContext, asking: Asking, live: LiveStep): Promise<Turn> {
  const { environment, signal } = context
  const { clock, ids } = environment
  const events = step({
    state: AgentState.initial({ ids }).withContext(asking.messages),
    llm: asking.instance,
    tools: asking.tools.tools,
    runsTools: false,
    signal,
    clock,
    ids,
  })
  for (;;) {
    const batch = await events.next()
    if (batch.done) return batch.value.turn!
    live.push(batch.value)
  }
}

async function commitAnswer(
  context: DrainContext,
  asking: Asking,
  turn: Turn,
  live: LiveStep,
): Promise<void> {
  const { state } = context
  const answer = await answerOf(context, asking, turn)
  const log = logAnswer(context, asking.log, { turn, answer, live })
  const { tokens, costUsd } = state.usage
  const usage = answer.usage
  await context.commit('answer', {
    events: [...log.events, answer],
    blobs: log.blobs,
    isProgress: true,
    head: {
      tokens: tokens + (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0),
      costUsd: costUsd + (answer.costUsd ?? 0),
    },
  })
  await tellCreated(context, asking.side, [answer])
}

/** The answer as an event of the log. */
export async function answerOf(
  context: DrainContext,
  { side, turn: sideTurn, step: begun, model }: Asking,
  turn: Turn,
): Promise<RuntimeMessageAdded> {
  const cost = costOf(model, turn.usage)
  const added: RuntimeMessageAdded = {
    type: 'message_added',
    at: context.at(),
    turnId: sideTurn.id,
    stepId: begun.id,
    side: side.side,
    agentId: `${context.agent.name}/${side.side}`,
    message: messageToJSON(kept(turn.response, side)),
    modelName: model.model.modelId,
    providerName: model.model.provider.name,
    finishReason: turn.stopReason,
    usage: toUsage(turn.usage),
    ...(cost !== undefined && { costUsd: cost }),
  }
  return withHooks(context, side, added)
}

/** Without its reasoning, where the prompt says so. */
function kept(answer: AssistantMessage, { prompt }: ResolvedSide): AssistantMessage {
  if (!prompt.definition.reasoning?.exclude) return answer
  const content = answer.content.filter(({ type }) => type !== 'reasoning')
  const { id, timestamp, metadata, toolCalls } = answer
  return new AssistantMessage(content, toolCalls, { id, timestamp, ...(metadata && { metadata }) })
}
