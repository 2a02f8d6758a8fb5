import { load, type ApiContext } from './api-context.ts'
import { sendMessage } from './send-message.ts'
import { threadInfos } from './thread-info.ts'
import { waitingItems } from './waiting-lists.ts'
import type { SessionEnd } from '../contract/event.ts'
import type { SessionResult } from '../contract/session-result.ts'
import type { Threads } from '../contract/threads.ts'
import type { KernelState } from '../state/kernel-state.ts'
import type { ThreadHead } from '../store/head.ts'
import { descendantsOf } from '../store/descendants.ts'
import { isParked } from '../store/head.ts'

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
 * ends the wait; the work itself continues when the store can be written again.
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
    const threadIds = [threadId, ...below] as const
    for await (const _ of context.live.watch(threadIds, { signal })) {
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

/** A result with the head of the thread (its row in the store) as it was when the result was found. */
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
  const rest = { waiting: [], thread: head }
  const none = { attachments: [], ...rest }

  // The session that answered the message has ended. What came after it does not matter.
  const place = state.places.get(queueId ?? '') ?? Infinity
  const isDropped = state.entries[place]?.dropped !== undefined
  const isAnswered = place < (session?.firstEntry ?? Infinity) && !isDropped && !state.isErased
  if (lastSession && lastSession.seq > after && isAnswered) {
    const isLast = place >= lastSession.firstEntry
    const fields = isLast
      ? endFields(lastSession, state, session?.firstEntry)
      : await earlierEnd(context, state, wait)
    return { ...(fields && { result: { ...fields, ...rest } }), below: [] }
  }

  // The runtime has given up the thread, before or after it took the message from the queue.
  const hasStuckWork = session !== undefined || (state.queue.length > 0 && stop === 'none')
  if (head.lifecycle === 'failed' && hasStuckWork && isAtRest) {
    const text = 'The thread could not continue; its log says why.'
    return { result: { outcome: 'failed', reason: 'drain_failed', text, ...none }, below: [] }
  }
  // The message was withdrawn before a session read it.
  if (queueId !== undefined && !state.places.has(queueId) && !isQueued)
    return { result: { outcome: 'stopped', reason: 'unsent', text: '', ...none }, below: [] }

  // A later message with `ifBusy: 'restart'` dropped this message.
  if (isDropped)
    return { result: { outcome: 'stopped', reason: 'restarted', text: '', ...none }, below: [] }

  const hasRested = queueId === undefined && isAtRest && !session && !state.resume
  if (terminated || state.isErased || hasRested) {
    const last = lastSession ?? { outcome: 'completed', reason: 'idle' }
    const over = { outcome: 'terminated', reason: 'terminated', hint: undefined } as const
    const lastEnd = terminated ? { ...last, ...over } : last
    return { result: { ...endFields(lastEnd, state), ...rest }, below: [] }
  }

  // Only a thread at rest waits for a person; a running thread may still end by itself. A queued message counts
  // as work even before its session begins: the thread may wait for a child that started together with it.
  const hasWork = session !== undefined || state.queue.length > 0
  if (!hasWork || !isAtRest) return { below: [] }
  const text = lastText(state) // read before the next await, during which the shared state may change
  const tree = [head, ...(await descendantsOf(context, head))]
  const below = tree.slice(1).map(({ id }) => id)
  const ids = new Set(tree.flatMap(({ id, waiting }) => (waiting > 0 ? [id] : [])))
  if (ids.size === 0) return { below }
  const items = await waitingItems(context, { rootId: head.rootId })
  // A session waits for its calls. It does not wait for an effect that needs an approval, nor for a child that
  // lacks variables, because the call that was to create the child has ended.
  const waiting = items.filter(
    ({ threadId, effectId, kind }) =>
      ids.has(threadId) && effectId === undefined && kind !== 'variables',
  )
  if (waiting.length === 0) return { below }
  return { result: { ...none, outcome: 'waiting', reason: 'waiting', text, waiting }, below }
}

type Ended = Pick<SessionEnd, 'outcome' | 'reason' | 'message' | 'hint' | 'data' | 'attachments'>

type EndFields = Omit<SessionResult, 'waiting' | 'thread'>

/** Returns what a result says about the end of a session. `to` is the number of messages up to that end. */
function endFields(
  { outcome, reason, message, hint, data, attachments = [] }: Ended,
  state: KernelState,
  to?: number,
): EndFields {
  const text = message ?? lastText(state, to)
  return { outcome, reason, text, ...(hint !== undefined && { hint }), data, attachments }
}

const PAGE = 1000

/** Reads from the log how the session ended that answered the message, if it is not the last session. */
async function earlierEnd(
  { store }: ApiContext,
  state: KernelState,
  { threadId, queueId, after = 0 }: Wait,
): Promise<EndFields | undefined> {
  let to: number | undefined
  for (let seq = after; ;) {
    const page = await store.events(threadId, { after: seq, limit: PAGE })
    for (const { event } of page) {
      if (event.type === 'message_added' && (to !== undefined || event.queueId === queueId))
        to = (state.places.get(event.message.id) ?? 0) + 1
      // After a handoff, the session of the next agent answers the message.
      if (to !== undefined && event.type === 'session_end' && event.reason !== 'handoff')
        return endFields(event, state, to)
    }
    if (page.length < PAGE) return undefined
    seq = page.at(-1)!.seq
  }
}

/** Returns the last text that the agent (side A) wrote, among the first `to` messages. */
function lastText({ entries }: KernelState, to = Infinity): string {
  const last = entries.findLast(
    ({ side, isRemoved, message }, index) =>
      index < to && side === 'a' && !isRemoved && message.type === 'assistant',
  )
  return last?.message.text ?? ''
}
