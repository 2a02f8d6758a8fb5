import {
  AssistantMessage,
  type LLMInstance,
  type Message,
  messageToJSON,
  type Turn,
  UPPError,
} from '@skein/ai'
import type { UppMessage } from '@skein/threads/upp'
import type { ResolvedModel, ResolvedSide } from '../definitions/resolved.ts'
import type { RuntimeMessageAdded } from '../event.ts'
import { type DrainContext, isStop } from '../context.ts'
import { LiveStep } from './live-step.ts'
import { logAnswer, logFailure, type LoggedRequest } from './log.ts'
import type { Step, Turn as SideTurn } from '../state.ts'
import { spentOn, toUsage, costOf } from '../usage.ts'
import { endSession } from '../session/end.ts'
import { afterStored, beforeCreate } from '../hooks/messages.ts'

/** A request that is ready to be sent. */
export interface Prepared {
  readonly instance: LLMInstance
  readonly messages: readonly Message[]
  readonly log: LoggedRequest
}

interface Asking extends Prepared {
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

/** One inference; what the model says is shown while it comes. */
async function think(
  { signal }: DrainContext,
  { instance, messages }: Asking,
  live: LiveStep,
): Promise<Turn> {
  const events = instance.infer(messages, { signal })
  for (;;) {
    const batch = await events.next()
    if (batch.done) return batch.value
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
  await afterStored(context, asking.side, [answer])
}

/** The answer as an event of the log. */
async function answerOf(
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
    message: messageToJSON(kept(turn.response, side)) as unknown as UppMessage, // same shape, two names
    modelName: model.model.modelId,
    providerName: model.model.provider.name,
    finishReason: turn.stopReason,
    usage: toUsage(turn.usage),
    costUsd: cost,
  }
  return beforeCreate(context, side, added)
}

/** Without its reasoning, where the prompt says so. */
function kept(answer: AssistantMessage, { prompt }: ResolvedSide): AssistantMessage {
  if (!prompt.definition.reasoning?.exclude) return answer
  const content = answer.content.filter(({ type }) => type !== 'reasoning')
  const { id, timestamp, metadata, toolCalls } = answer
  return new AssistantMessage(content, toolCalls, { id, timestamp, metadata })
}

/** What was said before a stop stays. A failure is tried again later: the wait is data, not a sleep. */
async function modelFailed(context: DrainContext, asking: Asking, error: unknown): Promise<void> {
  const { signal } = context
  if (signal.aborted) {
    if (isStop(signal.reason)) await keepPartial(context, asking, error)
    return
  }
  if (!(error instanceof UPPError)) throw error
  const { limits, clock } = context.environment
  const { turn, step, side } = asking
  const attempt = step.failures + 1
  const wait = error.retryAfterMs ?? limits.modelBackoffMs * 2 ** (attempt - 1)
  const hasFallback = attempt < side.prompt.models.length
  const mayRetry = hasFallback || (isTransient(error) && attempt < limits.modelAttempts)
  const retryAt = new Date(clock.now() + (hasFallback ? 0 : wait)).toISOString()
  const { code, message } = error
  const log = logFailure(context, asking, error)
  const failure = {
    type: 'step_failed',
    at: context.at(),
    turnId: turn.id,
    stepId: step.id,
    attempt,
    code,
    message,
    ...(mayRetry && { retryAt }),
  } as const
  const usage = error.turn?.usage
  const spent = usage && usage.totalTokens > 0 ? [spentOn(asking.model, usage, context.at())] : []
  await context.commit('step_failed', {
    events: [...log.events, ...spent, failure],
    blobs: log.blobs,
    isProgress: true,
  })
  if (!mayRetry) await endSession(context, { outcome: 'failed', reason: 'model_error', message })
}

const transient = new Set<string>([
  'RATE_LIMITED',
  'NETWORK_ERROR',
  'TIMEOUT',
  'PROVIDER_ERROR',
  'INVALID_RESPONSE', // e.g. an answer that is not the JSON that was asked for
])

function isTransient({ code, shouldRetry }: UPPError): boolean {
  return shouldRetry ?? transient.has(code)
}

/** The text that had been streamed when the user pressed stop. Calls are not kept: they never ran. */
async function keepPartial(context: DrainContext, asking: Asking, error: unknown): Promise<void> {
  const partial = error instanceof UPPError ? error.turn : undefined
  if (!partial || partial.response.text === '') return
  const { id, timestamp, text } = partial.response
  const said = new AssistantMessage(text, undefined, { id, timestamp })
  const answer = await answerOf(context, asking, { ...partial, response: said })
  const log = logFailure(context, asking, error)
  await context.commit('partial_answer', { events: [...log.events, answer], blobs: log.blobs })
}
