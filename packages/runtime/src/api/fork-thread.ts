import type { EventOf } from '../contract/event-of.ts'
import type { JsonObject } from '@skein/base'
import { load, type ApiContext } from './api-context.ts'
import { editsAfter, isCopied, rootCreated, storeCopy } from './copied-thread.ts'

import { checkLabel } from './labels.ts'
import { queuedMessage } from './send-message.ts'
import { RuntimeError } from '../contract/error.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { ForkThread, ForkedThread } from '../contract/new-thread.ts'
import { envContext } from '../secrets/vault.ts'
import type { ThreadHead } from '../store/head.ts'

/** Copies a thread up to a message into a new thread. File contents are shared by their hashes. */
export async function forkStoredThread(
  context: ApiContext,
  threadId: string,
  { upTo, before, owner, title, message, isContinued = false }: ForkThread = {},
): Promise<Pick<ForkedThread, 'runsAgain'> & { readonly head: ThreadHead }> {
  for (const [name, text] of Object.entries({ owner, title }))
    if (text !== undefined) checkLabel(text, `The ${name} of the thread`)
  const { head, state } = await load(context, threadId)
  if (state.isErased) throw cannotFork(`Thread ${threadId} was erased.`)
  const log = (await context.store.events(threadId)).map(({ event }) => event)
  if (upTo !== undefined && before !== undefined)
    throw new RuntimeError('A fork ends with a message or before one, not both.', {
      code: 'INPUT_INVALID',
      hint: 'Give `upTo` or `before`.',
    })
  const end = before === undefined ? cutAfter(log, upTo) : cutBefore(log, before)
  const [first, ...rest] = log.slice(0, end)
  if (first?.type !== 'thread_created') throw cannotFork(`Thread ${threadId} has no beginning.`)
  const id = context.ids()
  const copy = { id, title: title ?? head.title }
  const metadata = {
    ...first.metadata,
    forked_from: forkPlace(threadId, upTo ?? lastMessage(log.slice(0, end))),
  }
  const { vault } = context
  const by = owner ?? head.owner
  const next =
    message === undefined
      ? isContinued &&
        ({ type: 'resume_requested', at: context.at(), by: by ?? undefined } as const)
      : queuedMessage(context, message)
  if (next) await context.spending?.checkSend({ tenant: head.tenant, owner: by })
  const newThread = await storeCopy(context, {
    ...copy,
    tenant: head.tenant,
    owner: by,
    next: next || undefined,
    tags: head.tags,
    events: [
      { ...rootCreated(first, copy), at: first.at, metadata },
      ...[...rest.filter(isHistory), ...editsAfter(log, end)].map((event) => {
        if (event.type !== 'env_set' || event.valueType !== 'secret' || event.value === null)
          return event
        // An encrypted secret can be opened only for the thread whose id it was encrypted with, so it is
        // encrypted again for the copy.
        const secret = vault.open(event.value, envContext(threadId, event.name))
        return { ...event, value: vault.seal(secret, envContext(id, event.name)) }
      }),
    ],
    point: 'fork_thread',
  })
  return { head: newThread, runsAgain: workIn(context, log.slice(end)) }
}

function forkPlace(threadId: string, messageId: string | undefined): JsonObject {
  return messageId === undefined
    ? { thread_id: threadId }
    : { thread_id: threadId, message_id: messageId }
}

/** Returns the id of the last message of a copy; undefined for a copy without messages. */
function lastMessage(log: readonly RuntimeEvent[]): string | undefined {
  const last = log.findLast((event) => event.type === 'message_added')
  return last?.type === 'message_added' ? last.message.id : undefined
}

/** Counts what a thread did in a part of its log: requests to models, children, and calls of tools by risk. */
function workIn({ registry }: ApiContext, log: readonly RuntimeEvent[]): ForkedThread['runsAgain'] {
  const calls = new Map<string, number>()
  for (const event of log)
    if (event.type === 'tool_execution_start')
      calls.set(event.toolName, (calls.get(event.toolName) ?? 0) + 1)
  const countOf = (type: RuntimeEvent['type']): number =>
    log.filter((event) => event.type === type).length
  return {
    modelCalls: countOf('model_requested'),
    children: countOf('subagent_created'),
    calls: Array.from(calls, ([toolName, count]) => {
      const risk = registry.tools.get(toolName)?.governance.risk
      return { toolName, count, risk }
    }),
  }
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
function cutAfter(log: readonly RuntimeEvent[], messageId: string | undefined): number {
  if (messageId === undefined) return log.length
  const place = placeOf(log, messageId)
  const next = log.findIndex((event, index) => index > place && BEGINNINGS.has(event.type))
  return next < 0 ? log.length : next
}

/** Returns the index where a copy without the message ends: after the message before it, or at the beginning. */
function cutBefore(log: readonly RuntimeEvent[], messageId: string): number {
  const earlier = log.slice(0, placeOf(log, messageId))
  const last = earlier.findLast((event) => event.type === 'message_added')
  if (last?.type === 'message_added') return cutAfter(earlier, last.message.id)
  const beginning = earlier.findIndex((event) => BEGINNINGS.has(event.type))
  return beginning < 0 ? earlier.length : beginning
}

function placeOf(log: readonly RuntimeEvent[], messageId: string): number {
  const place = log.findLastIndex(
    (event) => event.type === 'message_added' && event.message.id === messageId,
  )
  if (place >= 0) return place
  throw new RuntimeError(`There is no message ${messageId} to fork at.`, {
    code: 'MESSAGE_NOT_FOUND',
    hint: 'Messages that still wait in the queue are not part of the history.',
  })
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
      event satisfies History
      return isCopied(event)
  }
}

function cannotFork(message: string): RuntimeError {
  return new RuntimeError(message, {
    code: 'INPUT_INVALID',
    hint: 'Fork a thread that still has its history.',
  })
}

/** Events that a fork copies, unless `isCopied` excludes them. */
// prettier-ignore
type History = EventOf<
  'thread_created' | 'thread_updated' | 'thread_terminated' | 'thread_erased' | 'status_changed' |
  'session_start' | 'session_end' | 'session_failing' | 'write_undone' | 'undo_decided' |
  'message_added' | 'message_updated' | 'call_changed' | 'message_removed' | 'delivery_changed' |
  'turn_start' | 'turn_end' | 'step_start' | 'step_reset' | 'step_failed' | 'text_delta' |
  'tool_execution_start' | 'tool_execution_end' | 'late_result' | 'call_reset' |
  'interrupt_opened' | 'interrupt_answered' | 'subagent_created' | 'subagent_updated' |
  'subagent_ended' | 'agent_handoff' | 'context_compacted' | 'gate_decided' | 'error_raised' |
  'usage_recorded' | 'agent_registered' | 'step_end' | 'reasoning_delta' | 'tool_call_delta' |
  'tool_execution_progress' | 'tool_call_hidden' | 'file_written' | 'file_removed' |
  'source_added' | 'evidence_added' | 'custom_event' | 'session_stop_requested' |
  'immediate_done' | 'turn_cut' | 'value_set' | 'env_set' | 'effect_scheduled' |
  'effect_started' | 'effect_ended' | 'grant_made' | 'grant_revoked'
>
