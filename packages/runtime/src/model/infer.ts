import { llm, type LLMRequest, NoRetry } from '@skein/ai'
import { toJsonSchema } from '@skein/base'
import type { DrainContext } from '../contract/context.ts'
import type { ResolvedModel, ResolvedSide } from '../definitions/resolved.ts'
import type { InferenceRecorded, RuntimeEvent } from '../contract/event.ts'
import { afterStored, HookBlockedError } from '../hooks/hooks.ts'
import {
  endSession,
  noteMessage,
  stepEnd,
  stepStart,
  takeQueue,
  waitText,
} from '../session/session.ts'
import type { SideTurn, Step } from '../contract/state.ts'
import { childRegistry } from '../thread/facade.ts'
import { overBudget } from '../contract/usage.ts'
import { askModel, type Prepared } from './ask.ts'
import { compactIfLong } from './compact.ts'
import { logRequest } from './log.ts'
import { hookedMessages, hookedSystem, modelMessages, paramsOf, systemText } from './prompt.ts'

/** A request of the strategy of an `agent()`, and the data that is recorded with its answer. */
export interface StrategyRequest {
  readonly request: Pick<LLMRequest, 'messages' | 'system' | 'params' | 'tools' | 'structure'>
  readonly record: Pick<InferenceRecorded, 'request' | 'history'>
  /** Whether the answer is kept for the strategy alone and is not a message of the conversation. */
  readonly isPrivate: boolean
}

/**
 * Runs one step of a side: takes the queued messages, asks the model, and commits the answer. `asked` is the
 * request of a side that is an `agent()`; such a side takes queued messages only when its turn is over.
 */
export async function infer(
  context: DrainContext,
  side: ResolvedSide,
  asked?: StrategyRequest,
): Promise<void> {
  const over = await overBudget(context)
  if (over !== undefined)
    return endSession(context, { outcome: 'failed', reason: 'budget_exceeded', message: over })
  if (!asked) await compactIfLong(context, side)
  const { turn, step } = await beginStep(context, side)
  const { models } = side.prompt
  // Each failure moves on to the next fallback model; after the last model, that model is asked again.
  const model = models[Math.min(step.failures, models.length - 1)]!
  try {
    const request = await prepare(context, { side, model, asked })
    await askModel(context, { side, turn, step, model, asked, ...request })
  } catch (error) {
    if (!(error instanceof HookBlockedError)) throw error
    await endSession(context, { outcome: 'failed', reason: 'blocked', message: error.message })
  }
}

/**
 * Takes messages that were queued meanwhile and starts the step. If this drain has already started the step
 * in an earlier commit, it is not started again.
 */
async function beginStep(
  context: DrainContext,
  side: ResolvedSide,
): Promise<{ turn: SideTurn; step: Step }> {
  const { state, epoch } = context
  const at = context.at()
  const turn = state.session!.turn! // `next` returns this action within a turn only
  // The strategy of an `agent()` continues after its calls without `end_step`, so its previous step may still
  // be open.
  const isOver = turn.step?.entry !== undefined
  const before = isOver ? undefined : turn.step
  const taken = side.agent ? [] : await takeQueue(context, side)
  const events: RuntimeEvent[] = [...taken, ...registryNote(context)]
  if (isOver) events.push(...stepEnd(context))
  if (before?.epoch === epoch) {
    if (events.length > 0) await context.commit('take_queue', { events })
    await afterStored(context, side, taken)
    return { turn, step: before }
  }
  const wasWaiting = before?.retry && waitText(before.retry) === state.statusText
  if (before)
    events.push({ type: 'step_reset', at, turnId: turn.id, stepId: before.id, reason: 'again' })
  // The status text said that the thread waits for the vendor; now it works again.
  if (wasWaiting) events.push({ type: 'status_changed', at, status: 'running' })
  events.push(stepStart(context, { turnId: turn.id, side: side.side, before }))
  const head = wasWaiting ? ({ lifecycle: 'running' } as const) : undefined
  await context.commit('step_start', { events, head })
  await afterStored(context, side, taken)
  return { turn: state.session!.turn!, step: state.session!.turn!.step! }
}

/** Returns a note with the list of subagents if the list has changed since the side last received it. */
function registryNote(context: DrainContext): readonly RuntimeEvent[] {
  const { state } = context
  const told = state.registryText[state.session?.turn?.side ?? 'a']
  const lines = childRegistry(state).map(({ reference, name, threadName, status, resumable }) => {
    const label = threadName === undefined ? name : `${name} "${threadName}"`
    return `- ${label} (reference: ${reference}): ${status}${resumable ? '' : ', not resumable'}`
  })
  // If the list is empty and the side never received one, there is nothing to correct.
  if (lines.length === 0 && told === undefined) return []
  const heading = 'Subagents of this thread:'
  const text = lines.length === 0 ? `${heading} none.` : [heading, ...lines].join('\n')
  return text === told ? [] : [noteMessage(context, text, 'registry')]
}

/** Builds the request and its record for the log. */
async function prepare(
  context: DrainContext,
  {
    side,
    model,
    asked,
  }: {
    readonly side: ResolvedSide
    readonly model: ResolvedModel
    readonly asked: StrategyRequest | undefined
  },
): Promise<Prepared> {
  const { environment, signal } = context
  const { clock, ids } = environment
  const { request } = asked ?? {}
  const system = request
    ? await hookedSystem(context, side, request.system ?? '')
    : await systemText(context, side)
  const messages = request
    ? await hookedMessages(context, side, request.messages)
    : await modelMessages(context, side)
  const { output, toolChoice } = side.prompt.definition
  const tools = request?.tools ?? (toolChoice === 'none' ? [] : context.tools(side))
  const params = request?.params ?? paramsOf(model, side)
  const structure = request ? request.structure : output && toJsonSchema(output)
  const { config } = model.definition ?? {}
  const instance = llm({
    model: model.model,
    params,
    tools,
    // Only the runtime retries, because it can wait without a running drain (see `modelFailed`). If the user
    // configured a retry strategy, its retries come in addition.
    config: { ...config, retryStrategy: config?.retryStrategy ?? new NoRetry() },
    system,
    structure,
    middleware: side.agent?.llmMiddleware,
    signal,
    clock,
    ids,
  })
  const log = logRequest(context, { side, model, system, tools, params, messages, structure })
  return { instance, messages, log }
}
