import { messageFromJSON, messageToJSON, type Message } from '@skein/ai'
import type { MessageJSON } from '@skein/base'
import type { DrainContext } from '../contract/context.ts'
import type { ResolvedSide } from '../definitions/resolved.ts'
import type { RuntimeEvent, RuntimeMessageAdded } from '../contract/event.ts'
import type { StoredMessage } from '../contract/thread-state.ts'
import { writeOf, type ChangesWrite } from '../thread/changes.ts'
import type { FacadeChanges } from '../thread/facade.ts'
import { storedMessage } from '../thread/messages.ts'
import { runHooks } from './run.ts'

type Updated = Extract<RuntimeEvent, { type: 'message_updated' }>

/**
 * What a tool or an effect changed, ready to commit. Its messages pass the hooks of the side first;
 * messages that a hook itself wrote do not (see `writeOf`), or hooks could call each other for ever.
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

/** Every message passes these hooks before it is stored, wherever it comes from. It keeps its id. */
export async function beforeCreate(
  context: DrainContext,
  side: ResolvedSide,
  added: RuntimeMessageAdded,
): Promise<RuntimeMessageAdded> {
  if (!side.hooks.some(({ hook }) => hook === 'before_create_message')) return added
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

/** A changed message keeps its type and its calls: results in the log belong to those calls. */
async function beforeUpdate(
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
      if (!side.hooks.some(({ hook }) => hook === 'after_create_message')) continue
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
