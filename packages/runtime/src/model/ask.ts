import { retryWhenLogMoved } from '../commit/log-moved.ts'
import type { CommitWrite, Write } from '../context/write.ts'
import {
  AssistantMessage,
  ErrorCode,
  type LLMInstance,
  type Message,
  messageToJSON,
  type StreamEvent,
  type ToolCall,
  type Turn,
  UPPError,
  UserMessage,
} from '@skein/ai'
import { judgeRetry } from '@skein/ai/engine'
import { type JsonObject, linkAbort, type MessageJSON } from '@skein/base'
import type { DrainContext } from '../context/drain-context.ts'
import { isStop } from '../contract/abort-reason.ts'
import type { KernelEnvironment } from '../context/environment.ts'
import { checksAnswers, type ResolvedModel, type ResolvedSide } from '../definitions/resolved.ts'
import type {
  InferenceRecorded,
  RuntimeEvent,
  RuntimeMessageAdded,
  StepFailed,
} from '../contract/event.ts'
import { afterStored, beforeCreate, hasHook } from '../hooks/hooks.ts'
import { endSession } from '../session/end-session.ts'
import { stepStart } from '../session/turn-events.ts'
import { type RuntimeError, spendingLimitOf } from '../contract/error.ts'
import { cutOf, type Step, type SideTurn } from '../state/kernel-state.ts'
import { costOf, toThreadUsage } from '../contract/usage.ts'
import type { StrategyRequest } from './infer.ts'
import { commitResidency, residencyOf, residencyRefusal } from './residency.ts'
import { generateForRuntime } from './runtime-request.ts'
import {
  logAnswer,
  logFailure,
  type LoggedRequest,
  logRequest,
  logLoss,
  withLoss,
  type LogWrites,
} from './log.ts'
import type { ThreadEvent } from '@skein/threads'

/** A request that is ready to be sent. */
export interface Prepared {
  readonly instance: LLMInstance
  readonly messages: readonly Message[]
  readonly log: LoggedRequest
}

/** A request to a model, together with the turn and step to which it belongs. */
interface Asking extends Prepared {
  readonly side: ResolvedSide
  readonly turn: SideTurn
  readonly step: Step
  readonly model: ResolvedModel
  /** The request of the strategy; set only for a side of the conversation that is an `agent()`. */
  readonly asked: StrategyRequest | undefined
}

/** Sends the request, streams the answer to subscribers, and commits the answer or the failure. */
export async function askModel(context: DrainContext, asking: Asking): Promise<void> {
  const callIds = new OwnCallIds(context)
  const live = new LiveStep(context, asking.turn.id, callIds)
  const { environment, head, state } = context
  const basis: Basis = { seq: state.seq, messages: asking.messages }
  const controller = new AbortController()
  const unlink = linkAbort([context.signal], controller)
  let why: 'edited' | 'cut' | undefined
  const timeLimit = new TimeLimit(environment, controller)
  const unlisten = environment.onEdit(head.id, (event) => {
    if (event.type === 'message_queued') why = 'cut'
    else if (isBuiltFrom(basis, event.messageId)) why ??= 'edited'
    if (why) controller.abort()
  })
  try {
    if (cutOf(state)) return
    const events = asking.instance.infer(asking.messages, { signal: controller.signal })
    let batch = await events.next()
    for (; !batch.done; batch = await events.next()) {
      timeLimit.moved()
      if (!asking.asked?.isPrivate) live.push(batch.value)
    }
    timeLimit.end()
    live.end()
    await commitAnswer(context, asking, { turn: batch.value, live, callIds, basis })
  } catch (error) {
    const isOurs = why && !context.signal.aborted && error instanceof UPPError
    if (isOurs && why === 'edited') await askAgain(context, asking, error)
    else if (isOurs) await keepCut(context, asking, error)
    else await modelFailed(context, asking, timeLimit.reached(asking.model, error) ?? error)
  } finally {
    timeLimit.end()
    unlisten()
    unlink()
  }
}

/** Aborts a request if its model sends nothing for `modelIdleMs`, or has not finished after `modelMs`. */
export class TimeLimit {
  readonly #environment: KernelEnvironment
  readonly #controller: AbortController
  readonly #startedAt: number
  #movedAt: number
  #timer: unknown
  #message: string | undefined

  constructor(environment: KernelEnvironment, controller: AbortController) {
    this.#environment = environment
    this.#controller = controller
    this.#startedAt = this.#movedAt = environment.clock.now()
    this.#arm()
  }

  /** Called whenever the model sends something; the timer checks how long ago that was. */
  moved(): void {
    this.#movedAt = this.#environment.clock.now()
  }

  end(): void {
    if (this.#timer !== undefined) this.#environment.timers.clear(this.#timer)
    this.#timer = undefined
  }

  /** Returns the error of a request that this limit aborted; undefined if the request ended for another reason. */
  reached({ model }: ResolvedModel, error: unknown): UPPError | undefined {
    if (this.#message === undefined || !(error instanceof UPPError)) return undefined
    const timeout = new UPPError(this.#message, {
      code: ErrorCode.Timeout,
      provider: model.provider.name,
      modality: 'llm',
      hint: 'The limits modelIdleMs and modelMs of createRuntime set the time.',
      cause: error,
    })
    timeout.turn = error.turn
    return timeout
  }

  #arm(): void {
    const { clock, timers, limits } = this.#environment
    const now = clock.now()
    const idleMs = this.#movedAt + limits.modelIdleMs - now
    const leftMs = this.#startedAt + limits.modelMs - now
    if (Math.min(idleMs, leftMs) === Infinity) return
    if (idleMs > 0 && leftMs > 0) {
      this.#timer = timers.set(Math.min(idleMs, leftMs), () => this.#arm())
      return
    }
    this.#message =
      leftMs <= 0
        ? `The model was not done after ${limits.modelMs} ms.`
        : `The model sent nothing for ${limits.modelIdleMs} ms.`
    this.#controller.abort()
  }
}

/** What a request was built from: the number of the log's last event at that time, and the messages sent. */
interface Basis {
  readonly seq: number
  readonly messages: readonly Message[]
}

/** Whether the request contains this message, or the results of the message's calls. */
function isBuiltFrom({ messages }: Basis, messageId: string): boolean {
  return messages.some(({ id }) => id === messageId || id === `${messageId}.results`)
}

/** Whether a message that the request contains was edited or removed after the request was built. */
function isOutdated({ state: { entries, editSeq } }: DrainContext, basis: Basis): boolean {
  if (editSeq <= basis.seq) return false
  return entries.some(
    ({ editedSeq, message }) => editedSeq > basis.seq && isBuiltFrom(basis, message.id),
  )
}

/**
 * Starts the step again, because a message of its request was edited or removed while the model
 * answered. The answer so far is dropped, but its cost is recorded.
 */
async function askAgain(
  context: DrainContext,
  asking: Asking,
  cause: UPPError,
  commit: DrainContext['commit'] = (point, write) => context.commit(point, write),
): Promise<void> {
  const { turn, step, side } = asking
  const at = context.at()
  const log = logLoss(context, asking, cause)
  const reset: RuntimeEvent = {
    type: 'step_reset',
    at,
    turnId: turn.id,
    stepId: step.id,
    reason: 'edited',
  }
  const again = stepStart(context, { turnId: turn.id, side: side.side, before: step })
  const events = [...log.events, reset, again]
  await commit('step_start', { kind: 'outcome', events, blobs: log.blobs })
}

function cancelledBy(message: string, { model: { model } }: Asking, turn: Turn): UPPError {
  const origin = { provider: model.provider.name, modality: 'llm' } as const
  const cause = new UPPError(message, { code: ErrorCode.Cancelled, ...origin })
  cause.turn = turn
  return cause
}

async function commitAnswer(
  context: DrainContext,
  asking: Asking,
  {
    turn,
    live,
    callIds,
    basis,
  }: {
    readonly turn: Turn
    readonly live: LiveStep
    readonly callIds: OwnCallIds
    readonly basis: Basis
  },
): Promise<void> {
  await commitResidency(context, residencyOf(turn))
  const answer = await answerOf(context, asking, { turn, callIds })
  const log = logAnswer(context, asking.log, {
    turn,
    messageId: answer.message.id,
    costUsd: answer.costUsd,
    firstTokenMs: live.firstTokenMs,
  })
  const { usage } = answer
  const events = [...log.events, ...recorded(asking, answer, turn)]
  // The answer is written with the commit that starts its first call or ends the step, unless user code acts on
  // it before that (the strategy of an `agent()`, a hook for stored messages or refused calls), or several
  // calls run in parallel: a late write might be refused, because of an edit, after the first call has started.
  const { response } = turn
  const isParallel = asking.side.prompt.definition.parallelToolCalls === true
  const mayJoin =
    !asking.asked &&
    !(isParallel && (response.toolCalls?.length ?? 0) > 1) &&
    !hasHook(asking.side, 'after_create_message', 'after_tool_call_failure') &&
    !hasHook(asking.side, 'before_store_tool_result')
  /** Returns true if the answer was stored; false if it was dropped because a message of its request was edited. */
  const storeOnce = async (commit: CommitWrite, joins: boolean): Promise<boolean> => {
    if (isOutdated(context, basis)) {
      const message = 'A message of this request was edited, so its answer was dropped.'
      await askAgain(context, asking, cancelledBy(message, asking, turn), commit)
      return false
    }
    if (cutOf(context.state)) {
      const message = 'A message cut the answer, so its calls were dropped.'
      await keepCut(context, asking, cancelledBy(message, asking, turn), commit)
      return false
    }
    const { tokens, costUsd } = context.state.usage
    const head = {
      tokens: tokens + (usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0),
      costUsd: costUsd + (answer.costUsd ?? 0),
    }
    const joinsNext = joins ? (again: CommitWrite) => store(again, false) : undefined
    // `expectsNoMail`: another writer may just have edited a message of the request, so the log must be unchanged.
    const write: Write = { kind: 'outcome', events, blobs: log.blobs, head, expectsNoMail: true }
    await commit('answer', { ...write, joinsNext })
    return true
  }
  const store = (commit: CommitWrite, joins: boolean): Promise<boolean> =>
    retryWhenLogMoved(() => storeOnce(commit, joins), { thread: context })
  if (!(await store((point, write) => context.commit(point, write), mayJoin))) return
  if (!asking.asked?.isPrivate) await afterStored(context, asking.side, [answer])
}

/**
 * Returns the events that record an answer. For an `agent()` they include the data with which its
 * strategy can be run again.
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
  const hooked = await beforeCreate(context, side, own)
  return hooked === own ? own : { ...hooked, message: callIds.inMessage(hooked.message) }
}

/**
 * Gives every call of an answer an id that no other call of the thread has: results, interrupts (waits)
 * and evidence refer to calls by id, but some servers number the calls of each answer from 0.
 * `@skein/ai` has already made the ids within one message differ.
 */
class OwnCallIds {
  readonly #context: DrainContext
  readonly #own = new Map<string, string>()

  constructor(context: DrainContext) {
    this.#context = context
  }

  /** Returns the id that the thread uses for the call to which the model gave this id. */
  of(toolCallId: string): string {
    const known = this.#own.get(toolCallId)
    if (known !== undefined) return known
    const { state, environment } = this.#context
    const isTaken = toolCallId === '' || state.callPlaces.has(toolCallId)
    const own = isTaken ? environment.ids() : toolCallId
    this.#own.set(toolCallId, own)
    return own
  }

  inMessage(message: MessageJSON): MessageJSON {
    const { toolCalls } = message as { readonly toolCalls?: readonly ToolCall[] }
    if (!toolCalls) return message
    const seen = new Set<string>()
    const own = toolCalls.map((call) => {
      const { toolCallId: given, metadata } = call
      const toolCallId = seen.has(this.of(given)) ? this.#context.environment.ids() : this.of(given)
      seen.add(toolCallId)
      if (toolCallId === given) return call
      // The vendor's id is kept in the metadata, as `@skein/ai` does. Calls and results are sent back with the new id.
      const skein = { vendorCallId: given, ...metadata?.['skein'] }
      return { ...call, toolCallId, metadata: { ...metadata, skein } }
    })
    if (own.every((call, place) => call === toolCalls[place])) return message
    return { ...message, toolCalls: own } as MessageJSON // only ids and metadata differ
  }
}

/** The longest delay between two requests that the runtime computes; a vendor may ask for a longer one. */
const MAX_BACKOFF_MS = 60_000

/**
 * Handles a failed request. If the side of the conversation has a fallback model that was not asked yet, that model
 * is asked next, without a delay; otherwise `judgeRetry` of `@skein/ai` decides whether the request is sent again.
 * There is no sleep: the time of the retry is stored in the log, the work on the thread ends, and the thread is
 * woken at that time. If the request is not sent again, e.g. because the vendor asks for a delay of more than 15
 * minutes, the session fails with the vendor's message.
 */
async function modelFailed(context: DrainContext, asking: Asking, error: unknown): Promise<void> {
  const { signal } = context
  if (signal.aborted) {
    if (isStop(signal.reason)) await keepPartial(context, asking, error)
    return
  }
  if (!(error instanceof UPPError)) throw error
  const { limits, clock } = context.environment
  const { turn, step, side } = asking
  const limit = spendingLimitOf(error)
  if (limit) return waitForLimit(context, asking, limit)
  await commitResidency(context, residencyRefusal(error))
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
  const log = logLoss(context, asking, error)
  const events = [...log.events, failure]
  await context.commit('step_failed', { kind: 'outcome', events, blobs: log.blobs })
  if (wait === undefined)
    await endSession(context, { outcome: 'failed', reason: 'model_error', message, hint })
}

/**
 * Records that a limit on spending stopped the request. The request was not sent, so it does not count
 * as a failed attempt. The thread waits until the period of the limit is over.
 */
async function waitForLimit(
  context: DrainContext,
  { turn, step }: Asking,
  { code, message, hint, retryAfterMs = 1 }: RuntimeError,
): Promise<void> {
  const failure: StepFailed = {
    type: 'step_failed',
    at: context.at(),
    turnId: turn.id,
    stepId: step.id,
    attempt: step.failures,
    code,
    message,
    hint,
    retryAt: new Date(context.environment.clock.now() + retryAfterMs).toISOString(),
  }
  await context.commit('step_failed', { kind: 'outcome', events: [failure] })
}

/**
 * Stores the text of the model that had arrived when the user pressed stop. Its tool calls are dropped,
 * because they never ran.
 */
async function keepPartial(context: DrainContext, asking: Asking, error: unknown): Promise<void> {
  const answer = await partialAnswer(context, asking, error)
  if (!answer) return
  const log = logFailure(context, asking, error)
  await context.commit('partial_answer', { events: [...log.events, answer], blobs: log.blobs })
}

/** Like `keepPartial`, but a new message ended the turn: work goes on, so the cost of the answer is recorded. */
async function keepCut(
  context: DrainContext,
  asking: Asking,
  error: UPPError,
  commit: DrainContext['commit'] = (point, write) => context.commit(point, write),
): Promise<void> {
  const answer = await partialAnswer(context, asking, error)
  const log = answer ? logFailure(context, asking, error) : logLoss(context, asking, error)
  const events = answer ? [...log.events, answer] : log.events
  await commit('partial_answer', { kind: 'outcome', events, blobs: log.blobs })
  await context.catchUp() // the message that cuts the turn may not be folded yet
}

/** Returns the text that had arrived, as a message without calls; undefined if no text had arrived. */
async function partialAnswer(
  context: DrainContext,
  asking: Asking,
  error: unknown,
): Promise<RuntimeMessageAdded | undefined> {
  const partial = error instanceof UPPError ? error.turn : undefined
  if (!partial || asking.asked?.isPrivate) return undefined
  const { id, timestamp, text: arrived } = partial.response
  // The end of the text may be the first part of a secret, which the redactor cannot recognise; it holds that end back.
  const text = context.redactor()?.stream().push(arrived) ?? arrived
  if (text === '') return undefined
  const said = new AssistantMessage(text, undefined, { id, timestamp })
  return answerOf(context, asking, { turn: { ...partial, response: said } })
}

type Held = ReturnType<NonNullable<ReturnType<DrainContext['redactor']>>['stream']>

/** Sends the deltas of a step to subscribers. Deltas are not stored; only the complete answer is. */
export class LiveStep {
  readonly #context: DrainContext
  readonly #turnId: string
  readonly #callIds: OwnCallIds
  readonly #startedAt: number
  /** One redactor per block, which holds text back, because a secret may be split between two chunks. */
  readonly #held = new Map<
    string,
    { readonly held: Held; readonly show: (text: string) => ThreadEvent }
  >()
  #prefix: string
  /** What deltas say of the delivery of their answer. */
  readonly #mark: { readonly delivery?: 'pending' }
  firstTokenMs: number | undefined

  constructor(
    context: DrainContext,
    turnId: string,
    callIds: OwnCallIds = new OwnCallIds(context),
  ) {
    this.#context = context
    this.#turnId = turnId
    this.#callIds = callIds
    this.#startedAt = context.environment.clock.now()
    this.#prefix = context.state.session?.turn?.step?.id ?? turnId
    this.#mark = checksAnswers(context.agent) ? { delivery: 'pending' } : {}
  }

  get durationMs(): number {
    return this.#context.environment.clock.now() - this.#startedAt
  }

  push(batch: readonly StreamEvent[]): void {
    const events = batch.flatMap((event) => this.#toEvents(event))
    if (events.length > 0) this.#context.environment.show(this.#context.head.id, events)
  }

  /** Sends the text that the redactors held back. Not called after a failure: that text may be a part of a secret. */
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
    const mark = this.#mark
    if (type === 'text_delta' || type === 'reasoning_delta')
      return this.#safe(`${type}${index}`, delta.text ?? '', (text) => ({
        type,
        at,
        turnId,
        blockId,
        text,
        ...mark,
      }))
    if (type !== 'tool_call_delta') return []
    const { toolName = '', argumentsJson = '' } = delta
    const toolCallId = this.#callIds.of(delta.toolCallId ?? '')
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

/**
 * Asks a model, the first one of this side of the conversation, for a text that the runtime needs, e.g. the first
 * instruction for a subagent, without tools and history. The caller commits `log`: the request and what came of it.
 */
export async function askLogged(
  context: DrainContext,
  side: ResolvedSide,
  { system, input }: { readonly system: string; readonly input: string },
): Promise<{ readonly turn?: Turn; readonly error?: unknown; readonly log: LogWrites }> {
  const { clock, ids } = context.environment
  const model = side.prompt.models[0]!
  const safe = context.redactor()?.text(input) ?? input
  const messages = [new UserMessage(safe, { clock, ids })]
  const params = model.definition?.providerOptions ?? {}
  const facts = { side, model, system, tools: [], params, messages, structure: undefined }
  const log = logRequest(context, facts)
  try {
    const turn = await generateForRuntime(context, side, messages, { system })
    const costUsd = costOf(model, turn.usage)
    const answered = logAnswer(context, log, { turn, costUsd })
    return { turn, log: withLoss(context, { log, model }, answered, turn.usage) }
  } catch (error) {
    return { error, log: logLoss(context, { log, model }, error) }
  }
}
