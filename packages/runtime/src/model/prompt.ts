import type { ResolvedModel, ResolvedPrompt, ResolvedSide } from '../definitions/resolved.ts'
import type { DrainContext } from '../contract/context.ts'
import { runHooks } from '../hooks/hooks.ts'
import { messageFromJSON, messageToJSON, type Message, type Params } from '@skein/ai'
import type { Redactor } from '../secrets/vault.ts'
import { noteMessage } from '../session/session.ts'
import { viewOf } from './view.ts'
import { translateParams } from '@skein/ai/gateway'

/**
 * Returns the system text of a side: its parts with variables filled in, processed by the hooks, without
 * secrets. Undefined when it is empty.
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
export async function hookedSystem(
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
 * Returns the messages of a request: the side's view of the conversation, processed by the hooks, without
 * secrets.
 */
export async function modelMessages(
  context: DrainContext,
  side: ResolvedSide,
): Promise<readonly Message[]> {
  return hookedMessages(context, side, await answerableView(context, side))
}

/**
 * Returns the side's view of the conversation. If it does not end with a message to answer, a note is added
 * first.
 */
export async function answerableView(
  context: DrainContext,
  side: ResolvedSide,
): Promise<readonly Message[]> {
  const view = viewOf(context.state, side.side, side.prompt)
  // After a resume, or when messages were removed, there may be no message left to answer.
  if ((view.at(-1)?.type ?? 'assistant') !== 'assistant') return view
  await context.commit('nudge', { events: [noteMessage(context, 'Go on.', 'nudge')] })
  return viewOf(context.state, side.side, side.prompt)
}

/** Passes the messages of a request through the hooks and removes secrets. */
export async function hookedMessages(
  context: DrainContext,
  side: ResolvedSide,
  view: readonly Message[],
): Promise<readonly Message[]> {
  const filtered = await filterStored(context, side, view)
  const redactor = context.redactor()
  const last = await runHooks(
    context,
    {
      side,
      name: 'prefilter_llm_history',
      args: (messages: readonly Message[]) => [messages],
      fold: (_, answer) => answer,
    },
    filtered,
  )
  return redactor ? last.map((message) => redacted(message, redactor)) : last
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
): Promise<readonly Message[]> {
  if (!side.hooks.some(({ hook }) => hook === 'filter_messages')) return view
  const stored = context.facade(side).state.getMessages({ includeSilent: true })
  const kept = await runHooks(
    context,
    {
      side,
      name: 'filter_messages',
      args: (messages: typeof stored) => [messages],
      fold: (_, answer) => answer,
    },
    stored,
  )
  if (kept === stored) return view
  const known = new Map(stored.map((one) => [one.id, one.message]))
  const chosen = new Map(kept.map((one) => [one.id, one.message]))
  return view.flatMap((message) => {
    const id = message.id.replace(/\.results$/, '')
    if (!known.has(id)) return [message]
    const now = chosen.get(id)
    if (!now) return []
    return now === known.get(id) || message.id !== id ? [message] : [now]
  })
}

/**
 * Returns the vendor's parameters. Later sources override earlier ones: the prompt's effort and tool choice,
 * the model's options, the prompt's own options.
 */
export function paramsOf(resolved: ResolvedModel, { prompt }: ResolvedSide): Params {
  const { providerOptions } = prompt.definition
  return { ...meant(resolved, prompt), ...resolved.definition?.providerOptions, ...providerOptions }
}

/**
 * Converts reasoning effort and tool choice to the vendor's parameters, if the model uses a wire of this
 * library that has such parameters.
 */
function meant({ model }: ResolvedModel, { definition, tools }: ResolvedPrompt): Params {
  const { reasoning, toolChoice } = definition
  const isRequired = toolChoice === 'required' && tools.length > 0
  if (!reasoning?.effort && !isRequired) return {}
  const wire = model.provider.handlers.llm?.bind(model).wire
  if (wire === undefined) return {}
  const words: Record<string, unknown> = {}
  if (reasoning?.effort) words['reasoning_effort'] = reasoning.effort
  if (isRequired) words['tool_choice'] = 'required'
  return translateParams(words, 'openai-chat', wire).params
}
