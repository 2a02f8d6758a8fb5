import type { KernelState } from '../contract/state.ts'
import type { SessionResult, Threads } from '../contract/runtime-api.ts'
import { load, threadInfos, type ApiContext } from './api-context.ts'
import type { ThreadHead } from '../store/store.ts'
import { descendantsOf, isParked } from '../store/thread-head.ts'
import { sendMessage } from './messages-api.ts'
import { waitingItems } from './inbox.ts'

interface Wait {
  readonly threadId: string
  readonly signal: AbortSignal | undefined
  /** The message whose session is awaited; without it, the call waits until the thread is at rest. */
  readonly queueId?: string
  /** Sessions that ended before the event with this number are ignored. */
  readonly after?: number
}

/** Sends a message and waits for the end of the session that answers it. */
export async function runThread(
  context: ApiContext,
  threadId: string,
  message: Parameters<Threads['run']>[1],
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<SessionResult> {
  signal?.throwIfAborted()
  const { queueId, seq } = await sendMessage(context, threadId, message)
  return waitFor(context, { threadId, signal, queueId, after: seq })
}

/** Waits until the thread is at rest or needs a person. */
export async function settledThread(
  context: ApiContext,
  threadId: string,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<SessionResult> {
  return waitFor(context, { threadId, signal })
}

/**
 * Waits for the result. Rejects while the store cannot be written, because nothing would be committed that
 * ends the wait; the work itself goes on when the store can be written again.
 */
function waitFor(context: ApiContext, wait: Wait): Promise<SessionResult> {
  return context.outage.guard(wait.signal, (signal) => resultOf(context, { ...wait, signal }))
}

/**
 * Checks the thread after each commit, and its descendants while it waits for them, because a descendant may
 * need a person. Aborting ends the waiting, not the session.
 */
async function resultOf(context: ApiContext, wait: Wait): Promise<SessionResult> {
  const { threadId, signal } = wait
  let below: readonly string[] = []
  for (;;) {
    signal?.throwIfAborted()
    const watched = [threadId, ...below] as const
    for await (const _ of context.live.watch(watched, { signal })) {
      const look = await lookAt(context, wait)
      if (look.result) {
        const [thread] = await threadInfos(context, [look.result.thread])
        return { ...look.result, thread: thread! }
      }
      if (look.below.length === below.length) continue
      below = look.below
      break // watch again, now with the new descendants
    }
  }
}

/** A result with the head of the thread as it was when the result was found. */
type Found = Omit<SessionResult, 'thread'> & { readonly thread: ThreadHead }

interface Look {
  readonly result?: Found
  /** Descendants whose changes may end the wait. */
  readonly below: readonly string[]
}

async function lookAt(context: ApiContext, wait: Wait): Promise<Look> {
  const { queueId, after = 0 } = wait
  const { head, state } = await load(context, wait.threadId)
  const { session, lastSession, terminated, stop } = state
  const isAtRest = isParked(head, context.clock.now())
  const isQueued = state.queue.some((queued) => queued.queueId === queueId)
  const none = { attachments: [], waiting: [], thread: head }

  // The drain failed for good, before or after it read the message.
  const hasStuckWork = session !== undefined || (state.queue.length > 0 && stop === 'none')
  if (head.lifecycle === 'failed' && hasStuckWork && isAtRest) {
    const text = 'The thread could not continue; its log says why.'
    return { result: { outcome: 'failed', reason: 'drain_failed', text, ...none }, below: [] }
  }
  // The message was withdrawn before a session read it.
  if (queueId !== undefined && !state.places.has(queueId) && !isQueued)
    return { result: { outcome: 'stopped', reason: 'unsent', text: '', ...none }, below: [] }

  // A later message made the thread start again without this one.
  if (queueId !== undefined && state.entries[state.places.get(queueId) ?? -1]?.dropped)
    return { result: { outcome: 'stopped', reason: 'restarted', text: '', ...none }, below: [] }

  const hasRested = !session && !state.resume
  const hasEnded = queueId === undefined ? isAtRest : !isQueued && (lastSession?.seq ?? 0) > after
  if (terminated || state.isErased || (hasRested && hasEnded)) {
    const result: Found = {
      outcome: terminated ? 'terminated' : (lastSession?.outcome ?? 'completed'),
      reason: terminated ? 'terminated' : (lastSession?.reason ?? 'idle'),
      text: lastSession?.message ?? lastText(state),
      ...(!terminated && lastSession?.hint !== undefined && { hint: lastSession.hint }),
      data: lastSession?.data,
      attachments: lastSession?.attachments ?? [],
      waiting: [],
      thread: head,
    }
    return { result, below: [] }
  }

  // Only a thread at rest waits for somebody; a running thread may still end by itself. A thread with a queue
  // but no session yet may be waiting for a child that started by itself.
  const hasWork = session !== undefined || state.queue.length > 0
  if (!hasWork || !isAtRest) return { below: [] }
  const text = lastText(state) // read before the next await, during which the shared state may change
  const tree = [head, ...(await descendantsOf(context, head))]
  const below = tree.slice(1).map(({ id }) => id)
  const ids = new Set(tree.flatMap(({ id, waiting }) => (waiting > 0 ? [id] : [])))
  if (ids.size === 0) return { below }
  const items = await waitingItems(context, { rootId: head.rootId })
  // A session waits for its calls; a scheduled effect that waits for approval does not hold it up.
  const waiting = items.filter((item) => ids.has(item.threadId) && item.effectId === undefined)
  if (waiting.length === 0) return { below }
  return { result: { ...none, outcome: 'waiting', reason: 'waiting', text, waiting }, below }
}

/** Returns the last text that side A wrote. */
function lastText({ entries }: KernelState): string {
  const last = entries.findLast(
    ({ side, isRemoved, message }) => side === 'a' && !isRemoved && message.type === 'assistant',
  )
  return last?.message.text ?? ''
}
