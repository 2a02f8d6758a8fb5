import { type Message, messageFromJSON, messageToJSON } from '@skein/ai'
import type { DrainContext } from '../context/drain-context.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import { runHooks } from '../hooks/hooks.ts'
import { HookAnswerError } from '../hooks/read-answer.ts'
import { noteMessage } from '../session/turn-events.ts'
import type { Redactor } from '../secrets/vault.ts'
import { viewOf } from './view.ts'
import { repairedMessages } from './repaired-messages.ts'

/**
 * Returns the messages of a request: the conversation as this side sees it, processed by the
 * hooks, without secrets.
 */
export async function modelMessages(
  context: DrainContext,
  side: ResolvedSide,
): Promise<readonly Message[]> {
  return hookedMessages(context, side, await answerableView(context, side))
}

/**
 * Returns the conversation as this side sees it. If this view does not end with a message that
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
  const filtered = await prefiltered(context, side, await filterStored(context, side, view))
  // Messages are repaired even if no hook changed them now: a hook may have changed them when they were stored.
  const messages = side.hooks.length === 0 ? view : repairedMessages(filtered.messages)
  if (messages.length === 0 && side.hooks.length > 0) {
    const hookId = filtered.hookId ?? side.hooks.map(({ id }) => id).join('", "')
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
  let copies = clean.get(redactor)
  if (!copies) clean.set(redactor, (copies = new WeakMap()))
  const before = copies.get(message)
  if (before) return before
  const json = messageToJSON(message)
  const safe = redactor.json(json)
  const result = safe === json ? message : messageFromJSON(safe)
  copies.set(message, result)
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
  const originals = new Map(stored.map((one) => [one.id, one.message]))
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
  const selection = new Map(kept.map((one) => [one.id, one.message]))
  const messages = view.flatMap((message) => {
    const id = message.id.replace(/\.results$/, '')
    if (!originals.has(id)) return [message]
    const now = selection.get(id)
    if (!now) return []
    return now === originals.get(id) || message.id !== id ? [message] : [now]
  })
  return { messages, hookId }
}
