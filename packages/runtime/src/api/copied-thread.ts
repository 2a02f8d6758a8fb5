import { headOf, type ApiContext } from './api-context.ts'
import { toRuntimeError } from './edit-thread.ts'
import { redacted } from './redacted-changes.ts'
import { RuntimeError } from '../contract/error.ts'
import type { MessageQueued, ResumeRequested, RuntimeEvent, RuntimeThreadCreated, StoredEvent } from '../contract/event.ts'
import { KernelFold } from '../state/fold.ts'
import type { KernelState } from '../state/kernel-state.ts'
import type { Blob } from '../store/commit.ts'
import type { ThreadHead } from '../store/head.ts'

interface Copy {
  readonly id: string
  readonly tenant: string
  readonly owner: string | null
  readonly title: string | null
  readonly tags: readonly string[]
  /** The events of the copy, beginning with its own `thread_created`. */
  readonly events: readonly RuntimeEvent[]
  readonly blobs?: readonly Blob[]
  /** An event that gives the copy work immediately. Default: none, so the copy is at rest. */
  readonly next?: MessageQueued | ResumeRequested
  readonly point: string
}

/** Stores a copied history as a new, independent thread that is at rest unless an event gives it work. */
export async function storeCopy(context: ApiContext, copy: Copy): Promise<ThreadHead> {
  const { id, tenant, owner, title, tags, events, blobs = [], next, point } = copy
  const fold = new KernelFold()
  events.forEach((event, index) => pushChecked(fold, { seq: index + 1, event }, index + 1))
  const { state } = fold
  for (const path of (next?.type === 'message_queued' && next.attachments) || [])
    if (!state.files.has(path))
      throw new RuntimeError(`There is no file ${path} in the copy.`, {
        code: 'FILE_NOT_FOUND',
        hint: 'Attach files that the history up to this message has.',
      })
  const append = [...events, ...settleCopied(state, context.at()), ...(next ? [next] : [])]
  // A handoff may have changed the agent; `agent()` throws when no agent has this name.
  const { name: agent } = context.registry.agent(state.agent)
  const create = {
    tenant,
    owner,
    agent,
    parentId: null,
    rootId: id,
    title,
    tags,
    clientId: null,
    createdAt: context.clock.now(),
  }
  try {
    const wake = next && { by: context.clock.now() }
    // The tokens and costs of the copied history count for the copy too, because its log contains them.
    const { startedAt: _, ...head } = state.usage
    const threads = redacted(context, state, [{ id, create, append, head, wake }])
    await context.commit({ point, threads, blobs })
  } catch (error) {
    throw toRuntimeError(error)
  }
  return headOf(context, id)
}

/** Returns the first event of a copy, which makes the copy a thread without a parent. */
export function rootCreated(
  event: RuntimeThreadCreated,
  { id, title }: { readonly id: string; readonly title: string | null },
): RuntimeThreadCreated {
  const { parent: _parent, parentThreadId: _id, title: _title, ...rest } = event
  return { ...rest, threadId: id, depth: 0, title: title ?? undefined }
}

/**
 * Returns the events after the copied part of a log that changed or removed messages of this part, so that a copy
 * does not show again what was deleted.
 */
export function editsAfter(log: readonly RuntimeEvent[], end: number): RuntimeEvent[] {
  const copies = new Set<string>()
  for (const event of log.slice(0, end))
    if (event.type === 'message_added') copies.add(event.message.id)
  let isKept = false
  return log.slice(end).filter((event) => {
    // The update before `call_changed` adds a call to the message; without this event the call has no state.
    if (event.type === 'call_changed') return isKept
    if (event.type === 'delivery_changed') return event.messageIds.some((id) => copies.has(id))
    const isEdit = event.type === 'message_updated' || event.type === 'message_removed'
    isKept = isEdit && copies.has(event.messageId)
    return isKept
  })
}

/** Applies one event to the state; throws an error with the line number when the event is invalid. */
export function pushChecked(fold: KernelFold, stored: StoredEvent, line: number): void {
  try {
    fold.push(stored)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new RuntimeError(`Line ${line} cannot be read: ${why}`, { code: 'INPUT_INVALID', cause })
  }
}

const WHY = 'This is a copy; the call belongs to the thread it was copied from.'

/**
 * Yields the events that bring a copied history to rest. Running, waiting or scheduled work belongs to the
 * original thread and must not happen again in the copy.
 */
function* settleCopied(state: KernelState, at: string): Generator<RuntimeEvent> {
  const { entries, session, queue, children, effects, variables } = state
  // Calls without a result get a result, because vendors reject a history in which a call has none.
  for (const { calls, turnId } of entries)
    for (const { call, outcome } of calls) {
      if (outcome) continue
      const { toolCallId, toolName } = call
      const end = { outcome: 'interrupted', result: WHY } as const
      yield { type: 'tool_execution_end', at, turnId, toolCallId, toolName, ...end }
    }
  if (session) {
    const { turn, id: sessionId, pending } = session
    if (pending.size > 0)
      yield { type: 'delivery_changed', at, messageIds: [...pending], delivery: 'refused' }
    if (turn)
      yield { type: 'turn_end', at, turnId: turn.id, outcome: 'interrupted', reason: 'copied' }
    yield { type: 'session_end', at, sessionId, outcome: 'completed', reason: 'copied' }
  }
  for (const { queueId } of queue) yield { type: 'message_unqueued', at, queueId }
  for (const { lifecycle, created } of children.values())
    if (lifecycle !== 'terminated')
      yield { type: 'subagent_ended', at, reference: created.reference, outcome: 'terminated' }
  for (const effectId of effects.keys())
    yield { type: 'effect_ended', at, effectId, outcome: 'removed' }
  for (const [requestId, { reference, error }] of variables)
    if (reference === undefined && error === undefined)
      yield { type: 'variables_settled', at, requestId, error: WHY }
}

/**
 * Returns false for events that a copy does not contain: the end of the thread, transient events, and grants,
 * which people gave to the original alone.
 */
export function isCopied(event: RuntimeEvent): boolean {
  const { type } = event
  if (type === 'custom_event') return event.isTransient !== true
  return !NOT_COPIED.has(type)
}

const NOT_COPIED: ReadonlySet<RuntimeEvent['type']> = new Set([
  'thread_terminated',
  'thread_erased',
  'grant_made',
  'grant_revoked',
])
