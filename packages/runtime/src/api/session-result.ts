import type { KernelState } from '../state.ts'
import { isParked } from '../live/read-thread.ts'
import type { SessionResult, Threads } from '../runtime-api.ts'
import type { ThreadHead } from '../store/store.ts'
import { load, type ApiContext } from './api-context.ts'
import { descendantsOf } from '../store/descendants.ts'
import { sendMessage } from './send-message.ts'
import { waitingItems } from './waiting-items.ts'

interface Wait {
  readonly threadId: string
  readonly signal: AbortSignal | undefined
  /** The message whose session is waited for; without it, for rest. */
  readonly queueId?: string
  /** Sessions that ended before this event do not count. */
  readonly after?: number
}

/** Sends, and waits for the end of the session that took the message. */
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
 * Looks after each commit to the thread, and to its descendants while it waits for them: one of these may
 * need a person. Aborting ends the waiting, not the session.
 */
async function waitFor(context: ApiContext, wait: Wait): Promise<SessionResult> {
  const { threadId, signal } = wait
  let below: readonly string[] = []
  for (;;) {
    signal?.throwIfAborted()
    const watched = [threadId, ...below] as const
    for await (const _ of context.live.watch(watched, { ...(signal && { signal }) })) {
      const look = await lookAt(context, wait)
      if (look.result) return look.result
      if (look.below.length === below.length) continue
      below = look.below
      break // watch those too
    }
  }
}

interface Look {
  readonly result?: SessionResult
  /** Descendants that may change what comes of it. */
  readonly below: readonly string[]
}

async function lookAt(context: ApiContext, wait: Wait): Promise<Look> {
  const { head, state } = await load(context, wait.threadId)
  const now = context.clock.now()
  if (isStuck(head, state, now)) return { result: stuckResult(head), below: [] }
  if (isUnsent(state, wait)) return { result: unsentResult(head), below: [] }
  if (hasEnded(head, state, now, wait)) return { result: endedResult(head, state), below: [] }
  // Only a thread at rest waits for somebody; what runs may still end by itself.
  // Before its session begins it may wait for a child that started by itself.
  const hasWork = state.session !== undefined || state.queue.length > 0
  if (!hasWork || !isParked(head, now)) return { below: [] }
  const text = lastText(state)
  const tree = [head, ...(await descendantsOf(context, head))]
  const below = tree.slice(1).map(({ id }) => id)
  const ids = new Set(tree.flatMap(({ id, waiting }) => (waiting > 0 ? [id] : [])))
  if (ids.size === 0) return { below }
  const items = await waitingItems(context, { rootId: head.rootId })
  const waiting = items.filter(({ threadId }) => ids.has(threadId))
  if (waiting.length === 0) return { below }
  const rest = { reason: 'waiting', text, attachments: [], waiting, thread: head }
  return { result: { outcome: 'waiting', ...rest }, below }
}

/** The drain has given up, before or after it took the message. */
function isStuck(head: ThreadHead, { queue, session, stop }: KernelState, now: number): boolean {
  const hasWork = session !== undefined || (queue.length > 0 && stop === 'none')
  return head.lifecycle === 'failed' && hasWork && isParked(head, now)
}

/** It was taken back before any session took it. */
function isUnsent({ queue, places }: KernelState, { queueId }: Wait): boolean {
  if (queueId === undefined || places.has(queueId)) return false
  return !queue.some((queued) => queued.queueId === queueId)
}

function hasEnded(
  head: ThreadHead,
  state: KernelState,
  now: number,
  { queueId, after = 0 }: Wait,
): boolean {
  if (state.terminated || state.isErased) return true
  if (state.session || state.resume) return false
  if (queueId === undefined) return isParked(head, now)
  const isTaken = !state.queue.some((queued) => queued.queueId === queueId)
  return isTaken && (state.lastSession?.seq ?? 0) > after
}

function stuckResult(head: ThreadHead): SessionResult {
  const text = 'The thread could not go on; its log says why.'
  const none = { attachments: [], waiting: [] }
  return { outcome: 'failed', reason: 'drain_failed', text, ...none, thread: head }
}

function unsentResult(head: ThreadHead): SessionResult {
  const none = { text: '', attachments: [], waiting: [] }
  return { outcome: 'stopped', reason: 'unsent', ...none, thread: head }
}

function endedResult(head: ThreadHead, state: KernelState): SessionResult {
  const { lastSession, terminated } = state
  const data = lastSession?.data
  return {
    outcome: terminated ? 'terminated' : (lastSession?.outcome ?? 'completed'),
    reason: terminated ? 'terminated' : (lastSession?.reason ?? 'idle'),
    text: lastSession?.message ?? lastText(state),
    ...(data !== undefined && { data }),
    attachments: lastSession?.attachments ?? [],
    waiting: [],
    thread: head,
  }
}

/** What side A said last. */
function lastText({ entries }: KernelState): string {
  const last = entries.findLast(
    ({ side, isRemoved, message }) => side === 'a' && !isRemoved && message.type === 'assistant',
  )
  return last?.message.text ?? ''
}
