import type { Write } from '../context/write.ts'
import { unlessLogMoved } from '../commit/log-moved.ts'
import {
  AssistantMessage,
  llm,
  type LLMRequest,
  type Message,
  messageFromJSON,
  messageToJSON,
  NoRetry,
  type Params,
} from '@skein/ai'
import { messageOf, toJsonSchema } from '@skein/base'
import type { DrainContext } from '../context/drain-context.ts'
import { RuntimeError } from '../contract/error.ts'
import {
  checksAnswers,
  modelNamed,
  type ResolvedModel,
  type ResolvedPrompt,
  type ResolvedSide,
} from '../definitions/resolved.ts'
import type { InferenceRecorded, RuntimeEvent } from '../contract/event.ts'
import { afterStored, beforeCreate, hookedWriteOf, reportAnswer, runHooks } from '../hooks/hooks.ts'
import { HookBlockedError } from '../hooks/run-hook.ts'
import { within } from '../hooks/time-limit.ts'
import { HookAnswerError } from '../hooks/read-answer.ts'
import { takeQueue } from '../session/take-queue.ts'
import { endSession } from '../session/end-session.ts'
import { noteMessage, stepEnd, stepStart } from '../session/turn-events.ts'
import { waitText } from './retry-text.ts'
import {
  type ChosenRun,
  chosenRun,
  cutOf,
  type SideTurn,
  type Step,
} from '../state/kernel-state.ts'
import { childNote } from '../children/child-list.ts'
import { overBudget } from './over-budget.ts'
import { askModel, type Prepared } from './ask.ts'
import { compactIfLong } from './compact.ts'
import { logRequest } from './log.ts'
import type { Redactor } from '../secrets/vault.ts'
import { withMedia } from './media.ts'
import { withoutVendorState } from './vendor-state.ts'
import { haveMedia, repairedMessages, viewOf } from './view.ts'

/** A request that the strategy of an `agent()` makes, and the data that is recorded with the answer. */
export interface StrategyRequest {
  readonly request: Pick<LLMRequest, 'messages' | 'system' | 'params' | 'tools' | 'structure'>
  readonly record: Pick<InferenceRecorded, 'request' | 'history'>
  /** Whether the answer is meant for the strategy alone and does not become a message of the conversation. */
  readonly isPrivate: boolean
}

/**
 * Runs one step of a side (A or B) of the conversation: takes queued messages, asks the model, commits the answer.
 * `asked` is set for an `agent()`: the request of its strategy; it takes queued messages only after its turn.
 */
export async function infer(
  context: DrainContext,
  side: ResolvedSide,
  asked?: StrategyRequest,
): Promise<void> {
  const over = await overBudget(context)
  if (over !== undefined)
    return endSession(context, { outcome: 'failed', reason: 'budget_exceeded', message: over })
  if (!asked && !side.handler) await compactIfLong(context, side)
  const begun = await beginStep(context, side)
  if (!begun) return // messages came, so `next` decides again
  const { turn, step } = begun
  if (side.handler) return answerByHandler(context, side, begun)
  const chosen = side.side === 'a' ? chosenRun(context.state) : undefined
  if (chosen?.call && !asked) return makeCall(context, side, begun, chosen)
  const answering = chosen ? chosenSide(context, side, chosen) : side
  if (!answering) {
    const message = `The model "${chosen?.model}" cannot be asked here.`
    const hint =
      'It is no longer defined, or it has no price and the thread has a budget in US dollars.'
    return endSession(context, { outcome: 'failed', reason: 'model_unknown', message, hint })
  }
  const { models } = answering.prompt
  // After each failure the next fallback model is asked; if the last model fails, the last model is asked again.
  const model = models[Math.min(step.failures, models.length - 1)]!
  try {
    const request = await prepare(context, { side: answering, model, asked })
    await askModel(context, { side: answering, turn, step, model, asked, ...request })
  } catch (error) {
    const { message } = error as Error // both errors that are handled here are errors
    if (error instanceof HookAnswerError) {
      await reportAnswer(context, error)
      return endSession(context, { outcome: 'failed', reason: 'hook_answer', message })
    }
    if (!(error instanceof HookBlockedError)) throw error
    await endSession(context, { outcome: 'failed', reason: 'blocked', message })
  }
}

/**
 * Returns the side of the conversation with the model and settings that a user's message chose. Returns undefined
 * if that model no longer exists, or if its price is unknown and the thread has a budget in US dollars.
 */
function chosenSide(
  { environment, state, agent }: DrainContext,
  side: ResolvedSide,
  { model: name, settings }: ChosenRun,
): ResolvedSide | undefined {
  const { prompt } = side
  const model = name === undefined ? undefined : modelNamed(environment.registry, name)
  const budget = state.budget ?? agent.definition.budget
  const hasCost = (budget?.maxCostUsd ?? budget?.tree?.maxCostUsd) !== undefined
  if (name !== undefined && (!model || (hasCost && !model.price))) return undefined
  const { definition } = prompt
  const providerOptions = { ...definition.providerOptions, ...settings }
  const models = model ? [model] : prompt.models
  return { ...side, prompt: { ...prompt, models, definition: { ...definition, providerOptions } } }
}

/** Makes the tool call that a user's message asks for, as if a model had; ends the session when it has a result. */
async function makeCall(
  context: DrainContext,
  side: ResolvedSide,
  { turn, step }: { readonly turn: SideTurn; readonly step: Step },
  { call, isCalled }: ChosenRun,
): Promise<void> {
  if (isCalled || !call)
    return endSession(context, { outcome: 'stopped', reason: 'called', message: '' })
  const { ids } = context.environment
  const at = context.at()
  const made = { toolCallId: ids(), toolName: call.toolName, arguments: call.arguments }
  const said = new AssistantMessage('', [made], { id: ids(), timestamp: new Date(at) })
  const answer = await beforeCreate(context, side, {
    type: 'message_added',
    at,
    turnId: turn.id,
    stepId: step.id,
    side: side.side,
    agentId: `${context.agent.name}/${side.side}`,
    message: messageToJSON(said),
    delivery: checksAnswers(context.agent) ? 'pending' : undefined,
  })
  await context.commit('handler_end', { kind: 'outcome', events: [answer] })
  await afterStored(context, side, [answer])
}

/** How long a handler may take, in ms: code that answers in a conversation instead of a model. */
const HANDLER_MS = 60_000

/**
 * Lets a handler, code in place of a model, answer. The answer is committed together with the handler's changes to
 * the thread. If the process dies before that, the handler runs again; if it throws, the session fails.
 */
async function answerByHandler(
  context: DrainContext,
  side: ResolvedSide,
  { turn, step }: { readonly turn: SideTurn; readonly step: Step },
): Promise<void> {
  const { environment, signal, state } = context
  const name = `${context.agent.name}/${side.side}`
  const asked = viewOf(state, side.side, side.prompt).at(-1)
  const message = asked?.type === 'user' ? asked.text : ''
  const facade = context.facade(side)
  let text: string
  try {
    const work = (limited: AbortSignal): Promise<string | void> => {
      const given = { message, signal: limited, idempotencyKey: step.id }
      const run = async () => side.handler!(facade.state, given)
      return context.runUserCode({ kind: 'handler', name, id: step.id }, run)
    }
    text = (await within(HANDLER_MS, work, signal)) ?? ''
  } catch (error) {
    if (signal.aborted) return // the next drain runs the handler again
    const said = context.redactor()?.text(messageOf(error)) ?? messageOf(error)
    const ending = { outcome: 'failed', reason: 'handler_error' } as const
    return endSession(context, { ...ending, message: `The handler of ${name} failed: ${said}` })
  } finally {
    context.hide(facade.secrets())
  }
  const write = await hookedWriteOf(context, facade.takeChanges(), side)
  const isEnded = write.events.some(({ type }) => type === 'session_stop_requested')
  if (text.trim() === '' && !isEnded) {
    const ending = { outcome: 'failed', reason: 'handler_error' } as const
    return endSession(context, { ...ending, message: `The handler of ${name} returned no text.` })
  }
  const at = context.at()
  const said = new AssistantMessage(text, undefined, {
    id: environment.ids(),
    timestamp: new Date(at),
  })
  const answer = await beforeCreate(context, side, {
    type: 'message_added',
    at,
    turnId: turn.id,
    stepId: step.id,
    side: side.side,
    agentId: name,
    message: messageToJSON(said),
    delivery: checksAnswers(context.agent) ? 'pending' : undefined,
  })
  const events = [...write.events, answer]
  try {
    await context.commit('handler_end', { ...write, events, kind: 'outcome' })
  } catch (error) {
    // Another writer has changed a value that the handler had read, so the handler runs again.
    if (!(error instanceof RuntimeError && error.code === 'STATE_CONFLICT')) throw error
    return context.catchUp()
  }
  await afterStored(context, side, events)
}

/**
 * Takes messages that were queued meanwhile and starts the step. If this process has already started
 * the step, in an earlier commit, the step is not started again.
 */
async function beginStep(
  context: DrainContext,
  side: ResolvedSide,
): Promise<{ turn: SideTurn; step: Step } | undefined> {
  const { state, epoch } = context
  if (cutOf(state)) return undefined
  const at = context.at()
  const turn = state.session!.turn! // a step is started only within a turn
  // The strategy of an `agent()` asks its model again after its calls, without an `end_step` in
  // between, so its previous step may still be open.
  const isOver = turn.step?.entry !== undefined
  const before = isOver ? undefined : turn.step
  const taken = side.agent ? [] : await takeQueue(context, side)
  const events: RuntimeEvent[] = [...taken, ...registryNote(context, side)]
  if (isOver) events.push(...stepEnd(context))
  if (before?.epoch === epoch) {
    const write: Write = { kind: 'begin', events, expectsNoMail: taken.length > 0 }
    if (
      events.length > 0 &&
      !(await unlessLogMoved(context, () => context.commit('take_queue', write)))
    )
      return undefined
    await afterStored(context, side, taken)
    return { turn, step: before }
  }
  const wasWaiting = before?.retry && waitText(before.retry) === state.statusText
  if (before)
    events.push({ type: 'step_reset', at, turnId: turn.id, stepId: before.id, reason: 'again' })
  // Until now the status said that the thread waits for the vendor; from now on it works again.
  if (wasWaiting) events.push({ type: 'status_changed', at, status: 'running' })
  events.push(stepStart(context, { turnId: turn.id, side: side.side, before }))
  const head = wasWaiting ? ({ lifecycle: 'running' } as const) : undefined
  const write: Write = { kind: 'begin', events, head, expectsNoMail: taken.length > 0 }
  if (!(await unlessLogMoved(context, () => context.commit('step_start', write)))) return undefined
  await afterStored(context, side, taken)
  return { turn: state.session!.turn!, step: state.session!.turn!.step! }
}

/**
 * Returns a note that lists the subagents, if the list has changed since the model last received it, or if the model
 * no longer sees that note: a summary stands in its place, or the prompt leaves out earlier sessions.
 */
function registryNote(context: DrainContext, side: ResolvedSide): readonly RuntimeEvent[] {
  const { state } = context
  const last = state.registryText[state.session?.turn?.side ?? 'a']
  const isNote = (message: Message): boolean => message.type === 'user' && message.text === last
  const isSeen = last !== undefined && viewOf(state, side.side, side.prompt).some(isNote)
  const told = isSeen ? last : undefined
  const note = childNote(state)
  // If the list is empty and the side of the conversation sees none, no note is needed.
  if (note === undefined && told === undefined) return []
  const text = note ?? '[runtime] Subagents of this thread: none.'
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
  const { maxMessageBytes, maxToolCalls } = environment.limits
  const { request } = asked ?? {}
  const system = request
    ? await hookedSystem(context, side, request.system ?? '')
    : await systemText(context, side)
  const messages = request
    ? await hookedMessages(context, side, request.messages)
    : await modelMessages(context, side)
  const { output, toolChoice } = side.prompt.definition
  const tools = request?.tools ?? (toolChoice === 'none' ? [] : context.tools(side))
  const { params, middleware } = withoutVendorState(
    model.model,
    request?.params ?? (await paramsOf(model, side)),
  )
  const structure = request ? request.structure : output && toJsonSchema(output)
  const { config } = model.definition ?? {}
  const instance = llm({
    model: model.model,
    params,
    tools,
    // The model call itself does not retry. The runtime does, because it can wait for long without holding
    // the thread (see `modelFailed`). A retry strategy that the user configured is used in addition.
    config: {
      maxMessageBytes,
      maxToolCalls,
      ...config,
      retryStrategy: config?.retryStrategy ?? new NoRetry(),
    },
    system,
    structure,
    // The spending limits wrap the request last, so that an answer from a cache of other middleware costs nothing.
    middleware: [
      middleware,
      context.trace?.middleware() ?? [],
      side.agent?.llmMiddleware ?? [],
      environment.spending?.middleware(context.head, side, model) ?? [],
    ].flat(),
    signal,
    clock,
    ids,
  })
  const { logged, sent } = haveMedia(context.state, messages)
    ? await withMedia(context, { side, model, messages })
    : { logged: messages, sent: messages }
  const facts = { side, model, system, tools, params, messages: logged, structure }
  return { instance, messages: sent, log: logRequest(context, facts) }
}

/**
 * Returns the system text of a side of the conversation: its parts with variables filled in, processed by the
 * hooks, without secrets. Undefined when it is empty.
 */
export async function systemText(
  context: DrainContext,
  side: ResolvedSide,
): Promise<string | undefined> {
  const env = context.env(side)
  const text = side.prompt.parts
    .map((part) => (part.type === 'text' ? part.content : (env.get(part.property) ?? '')))
    .join('')
  return hookedSystem(context, side, text)
}

/** Passes a system text through the hooks and removes secrets. Returns undefined when the result is empty. */
async function hookedSystem(
  context: DrainContext,
  side: ResolvedSide,
  text: string,
): Promise<string | undefined> {
  const seen = await runHooks(
    context,
    {
      side,
      name: 'after_system_message',
      args: (value: string | null) => [value ?? ''],
      fold: (_, answer) => answer,
    },
    text as string | null,
  )
  if (seen === null || seen === '') return undefined
  return context.redactor()?.text(seen) ?? seen
}

/**
 * Returns the messages of a request: the conversation as this side of it (A or B) sees it, processed by the
 * hooks, without secrets.
 */
async function modelMessages(
  context: DrainContext,
  side: ResolvedSide,
): Promise<readonly Message[]> {
  return hookedMessages(context, side, await answerableView(context, side))
}

/**
 * Returns the conversation as this side of it (A or B) sees it. If this view does not end with a message that
 * the model can answer, the note "Go on." is first added to the conversation.
 */
export async function answerableView(
  context: DrainContext,
  side: ResolvedSide,
): Promise<readonly Message[]> {
  const view = viewOf(context.state, side.side, side.prompt)
  // After a resume, or after messages were removed, the last message may be the model's own.
  if ((view.at(-1)?.type ?? 'assistant') !== 'assistant') return view
  const events = [noteMessage(context, 'Go on.', 'nudge')]
  await context.commit('nudge', { kind: 'begin', events })
  return viewOf(context.state, side.side, side.prompt)
}

/**
 * Passes the messages of a request through the hooks and removes secrets. The messages that the hooks return
 * are repaired so that vendors accept them; if none is left, the request is refused before it costs anything.
 */
export async function hookedMessages(
  context: DrainContext,
  side: ResolvedSide,
  view: readonly Message[],
): Promise<readonly Message[]> {
  const hooked = await prefiltered(context, side, await filterStored(context, side, view))
  // Messages are repaired even if no hook changed them now: a hook may have changed them when they were stored.
  const messages = side.hooks.length === 0 ? view : repairedMessages(hooked.messages)
  if (messages.length === 0 && side.hooks.length > 0) {
    const hookId = hooked.hookId ?? side.hooks.map(({ id }) => id).join('", "')
    throw new HookAnswerError(hookId, 'left no message to send to the model')
  }
  const redactor = context.redactor()
  return redactor ? messages.map((message) => redacted(message, redactor)) : messages
}

/** Messages of a request, and the last hook that changed them. */
interface HookedMessages {
  readonly messages: readonly Message[]
  readonly hookId?: string
}

function prefiltered(
  context: DrainContext,
  side: ResolvedSide,
  filtered: HookedMessages,
): Promise<HookedMessages> {
  return runHooks(
    context,
    {
      side,
      name: 'prefilter_llm_history',
      // Each hook gets a copy of the list: only the list that it returns counts, not what it does to the copy.
      args: ({ messages }: HookedMessages) => [[...messages]],
      fold: (_, messages, hookId) => ({ messages, hookId }),
    },
    filtered,
  )
}

const clean = new WeakMap<Redactor, WeakMap<Message, Message>>()

/** Removes secrets from a message. The result is cached per redactor, so each message is searched once. */
function redacted(message: Message, redactor: Redactor): Message {
  let known = clean.get(redactor)
  if (!known) clean.set(redactor, (known = new WeakMap()))
  const before = known.get(message)
  if (before) return before
  const json = messageToJSON(message)
  const safe = redactor.json(json)
  const result = safe === json ? message : messageFromJSON(safe)
  known.set(message, result)
  return result
}

/**
 * Runs the `filter_messages` hooks, which return the stored messages to keep and may replace their contents.
 */
async function filterStored(
  context: DrainContext,
  side: ResolvedSide,
  view: readonly Message[],
): Promise<HookedMessages> {
  if (!side.hooks.some(({ hook }) => hook === 'filter_messages')) return { messages: view }
  const stored = context.facade(side).state.getMessages({ includeSilent: true })
  const known = new Map(stored.map((one) => [one.id, one.message]))
  const { kept, hookId } = await runHooks<
    'filter_messages',
    { readonly kept: typeof stored; readonly hookId?: string }
  >(
    context,
    {
      side,
      name: 'filter_messages',
      args: (all) => [[...all.kept]],
      fold: (_, answer, id) => ({ kept: answer, hookId: id }),
    },
    { kept: stored },
  )
  if (hookId === undefined) return { messages: view }
  const chosen = new Map(kept.map((one) => [one.id, one.message]))
  const messages = view.flatMap((message) => {
    const id = message.id.replace(/\.results$/, '')
    if (!known.has(id)) return [message]
    const now = chosen.get(id)
    if (!now) return []
    return now === known.get(id) || message.id !== id ? [message] : [now]
  })
  return { messages, hookId }
}

/**
 * Returns the parameters for the vendor. Later sources override earlier ones: first the prompt's effort
 * and tool choice, then the model's options, then the prompt's options.
 */
export async function paramsOf(resolved: ResolvedModel, { prompt }: ResolvedSide): Promise<Params> {
  const { providerOptions } = prompt.definition
  const params = await meant(resolved, prompt)
  return { ...params, ...resolved.definition?.providerOptions, ...providerOptions }
}

/**
 * Converts reasoning effort and tool choice to the vendor's parameters, if the model uses a vendor
 * format (wire) of this library that has such parameters. Only then the gateway is loaded.
 */
async function meant(
  { model }: ResolvedModel,
  { definition, tools }: ResolvedPrompt,
): Promise<Params> {
  const { reasoning, toolChoice } = definition
  const isRequired = toolChoice === 'required' && tools.length > 0
  if (!reasoning?.effort && !isRequired) return {}
  const wire = model.provider.handlers.llm?.bind(model).wire
  if (wire === undefined) return {}
  const words: Record<string, unknown> = {}
  if (reasoning?.effort) words['reasoning_effort'] = reasoning.effort
  if (isRequired) words['tool_choice'] = 'required'
  const { translateParams } = await import('@skein/ai/gateway')
  return translateParams(words, 'openai-chat', wire).params
}
