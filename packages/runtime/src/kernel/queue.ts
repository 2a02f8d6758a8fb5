import { messageFromJSON, messageToJSON } from '@skein/ai'
import type { ResolvedSide } from '../definitions/resolved.ts'
import type { MessageQueued, RuntimeEvent, RuntimeMessageAdded } from '../event.ts'
import type { StoredMessage } from '../thread-state.ts'
import type { DrainContext } from './drain-context.ts'
import { runHooks } from './run-hooks.ts'

/** Takes everything that waits, in order, into the history; `side` is the one that will answer. */
export async function takeQueue(
  context: DrainContext,
  side: ResolvedSide,
): Promise<RuntimeMessageAdded[]> {
  const events: RuntimeMessageAdded[] = []
  const waiting = [...context.state.queue] // hooks may queue more; that is taken the next time
  for (const queued of waiting) events.push(await toAdded(context, side, queued))
  return events
}

/** Tells the hooks of messages that were stored. */
export async function tellCreated(
  context: DrainContext,
  side: ResolvedSide,
  added: readonly RuntimeMessageAdded[],
): Promise<void> {
  if (!side.hooks.some(({ hook }) => hook === 'after_create_message')) return
  for (const stored of added.map(toStored))
    await runHooks(context, { side, name: 'after_create_message', args: () => [stored] }, undefined)
}

async function toAdded(
  context: DrainContext,
  side: ResolvedSide,
  queued: MessageQueued,
): Promise<RuntimeMessageAdded> {
  const { queueId, role, isSilent, attachments, subagentId, metadata, userId } = queued
  const added: RuntimeMessageAdded = {
    type: 'message_added',
    at: context.at(),
    turnId: queueId,
    message: queued.message,
    side: role === 'user' ? 'b' : 'a',
    queueId,
    ...(isSilent && { isSilent }),
    ...(attachments && { attachments }),
    ...(subagentId !== undefined && { subagentId }),
    ...(metadata && { metadata }),
    ...(userId !== undefined && { userId }),
  }
  return withHooks(context, side, added)
}

/** Every message that is stored passes the hooks, wherever it comes from. It keeps its id. */
export async function withHooks(
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

export function toStored(added: RuntimeMessageAdded): StoredMessage {
  const { at, turnId, side, isSilent = false, attachments = [], subagentId, metadata } = added
  const message = messageFromJSON(added.message)
  return {
    id: message.id,
    message,
    side,
    isSilent,
    at,
    turnId,
    attachments,
    ...(subagentId !== undefined && { subagentId }),
    ...(metadata && { metadata }),
  }
}

/** A silent line of the runtime to the side that speaks. */
export function noteMessage(context: DrainContext, text: string, kind: string): RuntimeEvent {
  const { environment, state } = context
  const at = context.at()
  const id = environment.ids()
  const speaking = state.session?.turn?.side ?? 'a'
  return {
    type: 'message_added',
    at,
    turnId: id,
    message: { id, type: 'user', timestamp: at, content: [{ type: 'text', text }] },
    side: speaking === 'a' ? 'b' : 'a',
    isSilent: true,
    metadata: { kind, for: speaking },
  }
}
