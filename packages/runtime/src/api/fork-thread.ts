import { RuntimeError } from '../contract/error.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { Threads } from '../contract/runtime-api.ts'
import { envContext } from '../secrets/vault.ts'
import type { ThreadHead } from '../store/store.ts'
import { type ApiContext, checkLabel, load } from './api-context.ts'
import { rootCreated, storeCopy } from './copied-thread.ts'
import { isCopied } from './import-thread.ts'

type ForkOptions = NonNullable<Parameters<Threads['fork']>[1]>

/**
 * Copies a thread up to and including a message into a new thread. File contents are shared by their hashes.
 */
export async function forkStoredThread(
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
  const metadata = {
    ...first.metadata,
    forked_from:
      upTo === undefined ? { thread_id: threadId } : { thread_id: threadId, message_id: upTo },
  }
  const { vault } = context
  return storeCopy(context, {
    ...copy,
    tenant: head.tenant,
    owner: owner ?? head.owner,
    tags: head.tags,
    events: [
      { ...rootCreated(first, copy), at: first.at, metadata },
      ...rest.filter(isHistory).map((event) => {
        if (event.type !== 'env_set' || event.valueType !== 'secret' || event.value === null)
          return event
        // A sealed secret can be opened only in the thread it was sealed for, so it is sealed again for the
        // copy.
        const secret = vault.open(event.value, envContext(threadId, event.name))
        return { ...event, value: vault.seal(secret, envContext(id, event.name)) }
      }),
    ],
    point: 'fork_thread',
  })
}

const BEGINNINGS: ReadonlySet<RuntimeEvent['type']> = new Set([
  'message_added',
  'message_queued',
  'step_start',
  'turn_start',
  'session_start',
])

/**
 * Returns the index where the copy ends: after the message, the results of its calls and the end of its turn.
 */
function cutAfter(log: readonly RuntimeEvent[], messageId: string): number {
  const place = log.findLastIndex(
    (event) => event.type === 'message_added' && event.message.id === messageId,
  )
  if (place < 0)
    throw new RuntimeError(`There is no message ${messageId} to fork after.`, {
      code: 'MESSAGE_NOT_FOUND',
      hint: 'Messages that still wait in the queue are not part of the history.',
    })
  const next = log.findIndex((event, index) => index > place && BEGINNINGS.has(event.type))
  return next < 0 ? log.length : next
}

/**
 * Returns false for events that a fork does not copy: model requests and their costs, queued messages, stops
 * and resumes, requests for variables, and events that are never copied (`isCopied`).
 */
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

function cannotFork(message: string): RuntimeError {
  return new RuntimeError(message, {
    code: 'INPUT_INVALID',
    hint: 'Fork a thread that still has its history.',
  })
}
