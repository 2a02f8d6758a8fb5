import {
  AssistantMessage,
  judgeRetry,
  type LLMInstance,
  type Message,
  messageToJSON,
  type StreamEvent,
  type Turn,
  UPPError,
} from '@skein/ai'
import type { JsonObject } from '@skein/base'
import { type DrainContext, isStop } from '../contract/context.ts'
import type { ResolvedModel, ResolvedSide } from '../definitions/resolved.ts'
import type {
  InferenceRecorded,
  RuntimeEvent,
  RuntimeMessageAdded,
  StepFailed,
} from '../contract/event.ts'
import { afterStored, beforeCreate } from '../hooks/hooks.ts'
import { endSession } from '../session/session.ts'
import type { Step, SideTurn } from '../contract/state.ts'
import { costOf, spentOn, toThreadUsage } from '../contract/usage.ts'
import type { StrategyRequest } from './infer.ts'
import { logAnswer, logFailure, type LoggedRequest } from './log.ts'
import type { ThreadEvent } from '@skein/threads'

/** A request that is ready to be sent. */
export interface Prepared {
  readonly instance: LLMInstance
  readonly messages: readonly Message[]
  readonly log: LoggedRequest
}

/** A request together with the step it belongs to. */
interface Asking extends Prepared {
  readonly side: ResolvedSide
  readonly turn: SideTurn
  readonly step: Step
  readonly model: ResolvedModel
  /** The request of the strategy; set only for a side that is an `agent()`. */
  readonly asked: StrategyRequest | undefined
}

/** Sends the request, streams the answer to subscribers, and commits the answer or the failure. */
export async function askModel(context: DrainContext, asking: Asking): Promise<void> {
  const live = new LiveStep(context, asking.turn.id)
  try {
    const events = asking.instance.infer(asking.messages, { signal: context.signal })
    let batch = await events.next()
    for (; !batch.done; batch = await events.next())
      if (!asking.asked?.isPrivate) live.push(batch.value)
    live.end()
    await commitAnswer(context, asking, batch.value, live)
  } catch (error) {
    live.end()
    await modelFailed(context, asking, error)
  }
}

async function commitAnswer(
  context: DrainContext,
  asking: Asking,
  turn: Turn,
  live: LiveStep,
): Promise<void> {
  const answer = await answerOf(context, asking, turn)
  const log = logAnswer(context, asking.log, { turn, answer, live })
  const { usage } = answer
  const { tokens, costUsd } = context.state.usage
  await context.commit('answer', {
    events: [...log.events, ...recorded(asking, answer, turn)],
    blobs: log.blobs,
    isProgress: true,
    head: {
      tokens: tokens + (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0),
      costUsd: costUsd + (answer.costUsd ?? 0),
    },
  })
  if (!asking.asked?.isPrivate) await afterStored(context, asking.side, [answer])
}

/**
 * Returns the events that record an answer. For an `agent()` they include the data that its strategy needs to
 * be run again.
 */
function recorded(
  { asked, turn: { id: turnId }, step }: Asking,
  answer: RuntimeMessageAdded,
  turn: Turn,
): readonly RuntimeEvent[] {
  if (!asked) return [answer]
  const { record, isPrivate } = asked
  const { at, side, message, costUsd } = answer
  const { raw: _raw, ...usage } = turn.usage
  const inference: InferenceRecorded = {
    type: 'inference_recorded',
    at,
    turnId,
    stepId: step.id,
    side,
    ...record,
    messageId: isPrivate ? undefined : message.id,
    message: isPrivate ? message : undefined,
    stopReason: turn.stopReason,
    usage: usage as JsonObject,
    costUsd: isPrivate ? costUsd : undefined,
  }
  return isPrivate ? [inference] : [inference, answer]
}

/** Converts an answer to an event of the log. Reasoning is removed if the prompt excludes it. */
async function answerOf(
  context: DrainContext,
  { side, turn: sideTurn, step, model, asked }: Asking,
  turn: Turn,
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
    modelName: model.model.modelId,
    providerName: model.model.provider.name,
    finishReason: turn.stopReason,
    usage: toThreadUsage(turn.usage),
    costUsd: costOf(model, turn.usage),
  }
  return asked?.isPrivate ? answer : beforeCreate(context, side, answer)
}

/** The longest delay that is computed between two requests; the vendor may ask for a longer one. */
const MAX_BACKOFF_MS = 60_000

/**
 * Handles a failed request. If the side has a fallback model that was not asked yet, that model is asked
 * next, without a delay; otherwise `judgeRetry` of `@skein/ai` decides whether the request is sent again. The
 * delay is stored in the log instead of sleeping: the drain ends, and the thread is woken when the delay is
 * over. If the request is not sent again, e.g. because the vendor asks for a delay of more than 15 minutes,
 * the session fails with the vendor's message.
 */
async function modelFailed(context: DrainContext, asking: Asking, error: unknown): Promise<void> {
  const { signal } = context
  if (signal.aborted) {
    if (isStop(signal.reason)) await keepPartial(context, asking, error)
    return
  }
  if (!(error instanceof UPPError)) throw error
  const { limits, clock } = context.environment
  const { turn, step, side, model } = asking
  const attempt = step.failures + 1
  const verdict = judgeRetry(error, attempt, {
    maxRequests: limits.modelAttempts,
    baseDelayMs: limits.modelBackoffMs,
    maxDelayMs: MAX_BACKOFF_MS,
    jitter: false,
    retryInvalidResponse: true, // e.g. an answer that is not the requested JSON
  })
  const hasFallback = attempt < side.prompt.models.length
  const wait = hasFallback ? 0 : verdict.type === 'fail' ? undefined : verdict.ms
  const { code, message, hint } = error
  const failure: StepFailed = {
    type: 'step_failed',
    at: context.at(),
    turnId: turn.id,
    stepId: step.id,
    attempt,
    code,
    message,
    hint,
    retryAt: wait === undefined ? undefined : new Date(clock.now() + wait).toISOString(),
  }
  const log = logFailure(context, asking, error)
  const usage = error.turn?.usage
  const spent = usage && usage.totalTokens > 0 ? [spentOn(model, usage, context.at())] : []
  const events = [...log.events, ...spent, failure]
  await context.commit('step_failed', { events, blobs: log.blobs, isProgress: true })
  if (wait === undefined)
    await endSession(context, { outcome: 'failed', reason: 'model_error', message, hint })
}

/**
 * Stores the text that had arrived when the user pressed stop. Calls in it are dropped, because they never
 * ran.
 */
async function keepPartial(context: DrainContext, asking: Asking, error: unknown): Promise<void> {
  const partial = error instanceof UPPError ? error.turn : undefined
  if (!partial || partial.response.text === '' || asking.asked?.isPrivate) return
  const { id, timestamp, text } = partial.response
  const said = new AssistantMessage(text, undefined, { id, timestamp })
  const answer = await answerOf(context, asking, { ...partial, response: said })
  const log = logFailure(context, asking, error)
  await context.commit('partial_answer', { events: [...log.events, answer], blobs: log.blobs })
}

type Held = ReturnType<NonNullable<ReturnType<DrainContext['redactor']>>['stream']>

/** Sends the deltas of a step to subscribers. They are not stored; the complete answer is. */
export class LiveStep {
  readonly #context: DrainContext
  readonly #turnId: string
  readonly #startedAt: number
  /** One stream redactor per block, because a secret may be split between two chunks. */
  readonly #held = new Map<
    string,
    { readonly held: Held; readonly show: (text: string) => ThreadEvent }
  >()
  #prefix: string
  firstTokenMs: number | undefined

  constructor(context: DrainContext, turnId: string) {
    this.#context = context
    this.#turnId = turnId
    this.#startedAt = context.environment.clock.now()
    this.#prefix = context.state.session?.turn?.step?.id ?? turnId
  }

  get durationMs(): number {
    return this.#context.environment.clock.now() - this.#startedAt
  }

  push(batch: readonly StreamEvent[]): void {
    const events = batch.flatMap((event) => this.#toEvents(event))
    if (events.length > 0) this.#context.environment.show(this.#context.head.id, events)
  }

  /** Sends the text that the redactors have held back. */
  end(): void {
    const events: ThreadEvent[] = []
    for (const { held, show } of this.#held.values()) {
      const text = held.end()
      if (text !== '') events.push(show(text))
    }
    this.#held.clear()
    if (events.length > 0) this.#context.environment.show(this.#context.head.id, events)
  }

  #toEvents({ type, index, delta }: StreamEvent): ThreadEvent[] {
    const at = this.#context.at()
    const turnId = this.#turnId
    const blockId = `${this.#prefix}/${index}`
    if (type === 'text_delta' || type === 'reasoning_delta')
      return this.#safe(`${type}${index}`, delta.text ?? '', (text) => ({
        type,
        at,
        turnId,
        blockId,
        text,
      }))
    if (type !== 'tool_call_delta') return []
    const { toolCallId = '', toolName = '', argumentsJson = '' } = delta
    return this.#safe(toolCallId, argumentsJson, (argumentsText) => ({
      type: 'tool_call_delta',
      at,
      turnId,
      toolCallId,
      toolName,
      argumentsText,
    }))
  }

  #safe(key: string, text: string, show: (text: string) => ThreadEvent): ThreadEvent[] {
    this.firstTokenMs ??= this.durationMs
    const redactor = this.#context.redactor()
    if (!redactor) return [show(text)]
    const known = this.#held.get(key)?.held ?? redactor.stream()
    this.#held.set(key, { held: known, show })
    const safe = known.push(text)
    return safe === '' ? [] : [show(safe)]
  }
}
