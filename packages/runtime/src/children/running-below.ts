import type { DrainContext } from '../context/drain-context.ts'
import type { SessionName } from '../contract/event.ts'
import type { KernelState } from '../state/kernel-state.ts'
import { catchUpFold, KernelFold } from '../state/fold.ts'
import type { Store } from '../store/store.ts'
import type { ThreadChange } from '../store/commit.ts'

/** The threads below a session that have to stop because the session fails. */
export interface StopBelow {
  /** The changes that ask them to stop, and that withdraw messages which they have not begun to work on. */
  readonly changes: readonly ThreadChange[]
  /** The threads whose sessions have to end, with the last event of each. */
  readonly running: readonly { readonly threadId: string; readonly seq: number }[]
}

/**
 * Finds the threads below that work for the running session, at any depth: subagents, and subagents of these. Their
 * sessions leave their writes as they are, because the failing session undoes them together with its own, in order.
 */
export async function stopBelow(context: DrainContext): Promise<StopBelow> {
  const { state, environment, head } = context
  const { store, clock } = environment
  const own = { threadId: head.id, sessionId: state.session?.id ?? '' }
  const changes: ThreadChange[] = []
  const running: { threadId: string; seq: number }[] = []
  const at = context.at()
  const wake = { by: clock.now() }
  const open = liveChildren(state)
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    const child = await stateOf(store, id)
    if (!child || child.terminated || child.isErased) continue
    open.push(...liveChildren(child))
    if (child.session && isCaller(own, child.session.callers)) {
      changes.push({ id, append: [{ type: 'stop_requested', at, leavesWrites: true }], wake })
      running.push({ threadId: id, seq: child.seq })
      continue
    }
    const messages = child.queue.filter(({ callers }) => isCaller(own, callers))
    const append = messages.map(
      ({ queueId }) => ({ type: 'message_unqueued', at, queueId }) as const,
    )
    // The child may take the messages meanwhile: then this commit is refused, and the child is looked at again.
    if (append.length > 0) changes.push({ id, append, expectSeq: child.seq, wake })
  }
  return { changes, running }
}

/** A child that is not resumable has ended with its report, and its own children end with it. */
function liveChildren({ children }: KernelState): string[] {
  return [...children.values()]
    .filter(({ lifecycle }) => !['completed', 'failed', 'terminated'].includes(lifecycle))
    .map(({ created }) => created.reference)
}

function isCaller(
  { threadId, sessionId }: SessionName,
  callers: readonly SessionName[] = [],
): boolean {
  return callers.some((one) => one.threadId === threadId && one.sessionId === sessionId)
}

async function stateOf(store: Store, threadId: string): Promise<KernelState | undefined> {
  const head = await store.head(threadId)
  if (!head) return undefined
  const fold = new KernelFold()
  await catchUpFold(fold, store, { threadId, logId: head.logId })
  return fold.state
}

/** How many events of a thread are read in one request. */
const PAGE = 500

/** Whether the session that a thread had at the event `seq` has ended since; also if the thread is gone. */
export async function hasEnded(
  store: Store,
  { threadId, seq }: StopBelow['running'][number],
): Promise<boolean> {
  const head = await store.head(threadId)
  if (!head || head.lifecycle === 'erased') return true
  for (let after = seq; ;) {
    const page = await store.events(threadId, { after, limit: PAGE })
    const isOver = page.some(
      ({ event }) => event.type === 'session_end' && event.reason !== 'handoff',
    )
    if (isOver || page.length < PAGE) return isOver
    after = page.at(-1)!.seq
  }
}
