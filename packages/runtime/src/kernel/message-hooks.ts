import { messageFromJSON, messageToJSON, type Message } from '@skein/ai'
import type { MessageJSON } from '@skein/base'
import type { ResolvedSide } from '../definitions/resolved.ts'
import type { RuntimeEvent } from '../event.ts'
import { storedMessage } from '../services/stored-messages.ts'
import type { DrainContext } from './drain-context.ts'
import { tellCreated, withHooks } from './queue.ts'
import { runHooks } from './run-hooks.ts'

type Updated = Extract<RuntimeEvent, { type: 'message_updated' }>

/** Messages that a tool or an effect has added or changed pass the hooks before they are stored. */
export async function messagesThroughHooks(
  context: DrainContext,
  side: ResolvedSide,
  events: readonly RuntimeEvent[],
): Promise<readonly RuntimeEvent[]> {
  const seen: RuntimeEvent[] = []
  for (const event of events) {
    if (event.type === 'message_added') seen.push(await withHooks(context, side, event))
    else if (event.type === 'message_updated') seen.push(await updatedBy(context, side, event))
    else seen.push(event)
  }
  return seen
}

/** A message stays of its type, and its calls stay: results in the log belong to them. */
async function updatedBy(
  context: DrainContext,
  side: ResolvedSide,
  event: Updated,
): Promise<Updated> {
  if (!side.hooks.some(({ hook }) => hook === 'before_update_message')) return event
  const before = messageFromJSON(event.message)
  const message = await runHooks(
    context,
    {
      side,
      name: 'before_update_message',
      args: (value: Message) => [event.messageId, value],
      fold: (value, answer) => (answer.type === value.type ? answer : value),
    },
    before,
  )
  if (message === before) return event
  const json = messageToJSON(message)
  const { toolCalls } = event.message as { readonly toolCalls?: unknown }
  const kept = { ...json, id: event.messageId, ...(toolCalls !== undefined && { toolCalls }) }
  return { ...event, message: kept as MessageJSON }
}

/** Tells the hooks once it is stored. */
export async function tellMessageHooks(
  context: DrainContext,
  side: ResolvedSide,
  events: readonly RuntimeEvent[],
): Promise<void> {
  for (const event of events) {
    if (event.type === 'message_added') await tellCreated(context, side, [event])
    if (event.type !== 'message_updated') continue
    const stored = storedMessage(context.state, event.messageId)
    if (!stored) continue
    await runHooks(context, { side, name: 'after_update_message', args: () => [stored] }, undefined)
  }
}
