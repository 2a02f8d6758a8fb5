import { messageFromJSON, messageToJSON, type Message } from '@skein/ai'
import type { ResolvedSide } from '../definitions/resolved.ts'
import type { Redactor } from '../services/vault.ts'
import type { DrainContext } from './drain-context.ts'
import { noteMessage } from './queue.ts'
import { runHooks } from './run-hooks.ts'
import { viewOf } from './view.ts'

/** The messages of a request: the side's view, then the hooks, then without secrets. */
export async function modelMessages(
  context: DrainContext,
  side: ResolvedSide,
): Promise<readonly Message[]> {
  const view = await answerableView(context, side)
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

/** After a resume, or when messages were removed, there may be nothing left to answer: then it is told to go on. */
async function answerableView(context: DrainContext, side: ResolvedSide): Promise<Message[]> {
  const view = viewOf(context.state, side.side, side.prompt)
  const last = view.at(-1)
  if (last && last.type !== 'assistant') return view
  await context.commit('nudge', { events: [noteMessage(context, 'Go on.', 'nudge')] })
  return viewOf(context.state, side.side, side.prompt)
}

const clean = new WeakMap<Redactor, WeakMap<Message, Message>>()

/** A message is looked through once for a set of secrets. */
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

/** `filter_messages` names the stored messages to keep, or replaces their contents. */
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
