import { RuntimeError } from '../error.ts'
import type { RuntimeEvent } from '../event.ts'
import type { Threads } from '../runtime-api.ts'
import { envContext } from '../secrets/vault.ts'
import type { ThreadHead } from '../store/store.ts'
import { load, type ApiContext } from './api-context.ts'
import { checkLabel } from './check-input.ts'
import { rootCreated, storeCopy } from './copied-thread.ts'
import { isCopied } from './thread-lines.ts'

type ForkOptions = NonNullable<Parameters<Threads['fork']>[1]>

/** A new thread with the history up to and with a message. Contents are shared by their hashes. */
export async function forkThread(
  context: ApiContext,
  threadId: string,
  { upTo, owner, title }: ForkOptions = {},
): Promise<ThreadHead> {
  for (const [name, text] of Object.entries({ owner, title }))
    if (text !== undefined) checkLabel(text, `The ${name} of the thread`)
  const { head, state } = await load(context, threadId)
  if (state.isErased) throw cannotFork(`Thread ${threadId} was erased.`)
  const log = (await context.store.events(threadId)).map(({ event }) => event)
  const [first, ...rest] = log.slice(0, upTo === undefined ? log.length : cutAfter(log, upTo))
  if (first?.type !== 'thread_created') throw cannotFork(`Thread ${threadId} has no beginning.`)
  const id = context.ids()
  const copy = { id, title: title ?? head.title }
  return storeCopy(context, {
    ...copy,
    tenant: head.tenant,
    owner: owner ?? head.owner,
    tags: head.tags,
    events: [
      { ...rootCreated(first, copy), at: first.at, metadata: forkedFrom(first, threadId, upTo) },
      ...rest.filter(isHistory).map((event) => resealed(context, event, threadId, id)),
    ],
    point: 'fork_thread',
  })
}

function forkedFrom(
  { metadata = {} }: Extract<RuntimeEvent, { type: 'thread_created' }>,
  threadId: string,
  upTo: string | undefined,
) {
  return { ...metadata, forked_from: { thread_id: threadId, ...(upTo && { message_id: upTo }) } }
}

/** Where the next message or step after this one begins: results of its calls and the end of its turn go with it. */
function cutAfter(log: readonly RuntimeEvent[], messageId: string): number {
  const place = log.findLastIndex(
    (event) => event.type === 'message_added' && event.message.id === messageId,
  )
  if (place < 0)
    throw new RuntimeError(`There is no message ${messageId} to fork after.`, {
      code: 'MESSAGE_NOT_FOUND',
      hint: 'Messages that still wait in the queue are not part of the history.',
    })
  const next = log.findIndex((event, index) => index > place && beginsAnew(event))
  return next < 0 ? log.length : next
}

function beginsAnew({ type }: RuntimeEvent): boolean {
  return (
    type === 'message_added' ||
    type === 'message_queued' ||
    type === 'step_start' ||
    type === 'turn_start' ||
    type === 'session_start'
  )
}

/** Requests to models were paid for by the other thread, and what was queued or pressed there stays there. */
function isHistory(event: RuntimeEvent): boolean {
  switch (event.type) {
    case 'message_queued':
    case 'message_unqueued':
    case 'stop_requested':
    case 'resume_requested':
    case 'model_requested':
    case 'model_answered':
    case 'inference_recorded':
    case 'variables_requested':
    case 'variables_provided':
    case 'variables_settled':
      return false
    default:
      return isCopied(event)
  }
}

/** A sealed secret opens in its own thread alone. */
function resealed(
  { vault }: ApiContext,
  event: RuntimeEvent,
  from: string,
  to: string,
): RuntimeEvent {
  if (event.type !== 'env_set' || event.valueType !== 'secret' || event.value === null) return event
  const secret = vault.open(event.value, envContext(from, event.name))
  return { ...event, value: vault.seal(secret, envContext(to, event.name)) }
}

function cannotFork(message: string): RuntimeError {
  return new RuntimeError(message, { code: 'INPUT_INVALID', hint: 'It cannot be forked.' })
}
