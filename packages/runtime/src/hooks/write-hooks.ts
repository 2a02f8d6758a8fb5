import { hasHook, runHooks } from './hooks.ts'
import { storedMessage } from '../thread/messages.ts'
import type { FacadeChanges } from '../thread/facade.ts'
import type { StoredMessage } from '../contract/thread-state.ts'
import type { RuntimeEvent, RuntimeMessageAdded } from '../contract/event.ts'
import type { MessageJSON } from '@skein/base'
import { type Message, messageFromJSON, messageToJSON } from '@skein/ai'
import { type ChangesWrite, writeOf } from '../thread/changes.ts'
import type { DrainContext } from '../contract/context.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'

type Updated = Extract<RuntimeEvent, { type: 'message_updated' }>
/**
 * Converts the changes of a tool or an effect into a write. Their messages pass the hooks of the side first;
 * messages that a hook wrote do not (see `writeOf`), because hooks could otherwise call each other for ever.
 */
export async function hookedWriteOf(
  context: DrainContext,
  changes: FacadeChanges,
  side: ResolvedSide | undefined,
): Promise<ChangesWrite> {
  const write = await writeOf(context, changes)
  if (!side) return write
  const events: RuntimeEvent[] = []
  for (const event of write.events) {
    if (event.type === 'message_added') events.push(await beforeCreate(context, side, event))
    else if (event.type === 'message_updated') events.push(await beforeUpdate(context, side, event))
    else events.push(event)
  }
  return { ...write, events }
}
/**
 * Runs the `before_create_message` hooks, which every message passes before it is stored. The message keeps
 * its id.
 */
export async function beforeCreate(
  context: DrainContext,
  side: ResolvedSide,
  added: RuntimeMessageAdded,
): Promise<RuntimeMessageAdded> {
  if (!hasHook(side, 'before_create_message')) return added
  const before = toStored(added)
  const message = await runHooks(
    context,
    {
      side,
      name: 'before_create_message',
      args: (value: StoredMessage) => [value],
      fold: (value, { message }) => ({ ...value, message }),
    },
    before,
  )
  if (message === before) return added
  const json = messageToJSON(message.message)
  return { ...added, message: { ...json, id: before.id } }
}
/**
 * Runs the `before_update_message` hooks. The message keeps its type and its calls, because results in the
 * log belong to those calls.
 */
async function beforeUpdate(
  context: DrainContext,
  side: ResolvedSide,
  event: Updated,
): Promise<Updated> {
  if (!hasHook(side, 'before_update_message')) return event
  const before = messageFromJSON(event.message)
  const message = await runHooks(
    context,
    {
      side,
      name: 'before_update_message',
      args: (value: Message) => [event.messageId, value],
      fold: (_, answer) => answer,
    },
    before,
  )
  if (message === before) return event
  const json = messageToJSON(message)
  const { toolCalls } = event.message as { readonly toolCalls?: unknown }
  return { ...event, message: { ...json, id: event.messageId, toolCalls } as MessageJSON }
}
/** Runs the hooks for messages that were stored: `after_create_message`, `after_update_message`. */
export async function afterStored(
  context: DrainContext,
  side: ResolvedSide,
  events: readonly RuntimeEvent[],
): Promise<void> {
  for (const event of events) {
    if (event.type === 'message_added') {
      if (!hasHook(side, 'after_create_message')) continue
      const stored = toStored(event)
      await runHooks(
        context,
        { side, name: 'after_create_message', args: () => [stored] },
        undefined,
      )
    }
    if (event.type !== 'message_updated') continue
    const stored = storedMessage(context.state, event.messageId)
    if (!stored) continue
    await runHooks(context, { side, name: 'after_update_message', args: () => [stored] }, undefined)
  }
}
function toStored(added: RuntimeMessageAdded): StoredMessage {
  const { at, turnId, side, isSilent = false, attachments = [], subagentId, metadata } = added
  const message = messageFromJSON(added.message)
  const { id } = message
  return { id, message, side, isSilent, at, turnId, attachments, subagentId, metadata }
}
