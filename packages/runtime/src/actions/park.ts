import { unlessLogMoved } from '../commit/log-moved.ts'
import { toldToParent } from '../children/tell-parent.ts'
import type { DrainContext } from '../context/drain-context.ts'
import type { Write } from '../context/write.ts'
import type { KernelAction } from '../state/kernel-action.ts'
import { waitText } from '../model/retry-text.ts'
import { isWaiting, openCalls } from '../state/kernel-state.ts'
import { waitingCount } from '../state/questions.ts'
import type { ThreadLifecycle } from '../store/head.ts'

/**
 * A thread that waits longer than this for its model's vendor, before a retry, has the status `waiting`
 * instead of `running`.
 */
const LONG_WAIT_MS = 60_000

/**
 * Commits that the thread waits until `wakeAt`, and returns true: the work on it ends. Returns false if
 * another writer has appended to the log meanwhile: the work continues.
 */
export async function park(
  context: DrainContext,
  { wakeAt, retry }: Extract<KernelAction, { type: 'park' }>,
): Promise<boolean> {
  const { state } = context
  const isLong = retry && Date.parse(retry.at) - context.environment.clock.now() > LONG_WAIT_MS
  const { session, stop, lastSession } = state
  const waitsForAnswer = openCalls(state).some((call) => isWaiting(state, call))
  let lifecycle: Exclude<ThreadLifecycle, 'erased'> =
    stop === 'stopped' ? 'stopped' : lastSession?.outcome === 'failed' ? 'failed' : 'idle'
  if (session) lifecycle = isLong || waitsForAnswer ? 'waiting' : 'running'
  if (session?.failing) lifecycle = 'stopping'
  if (state.terminated) lifecycle = 'terminated'
  const text = retry && waitText(retry)
  const isNew = lifecycle !== state.status || (retry && text !== state.statusText)
  const waiting = waitingCount(state, context.environment.clock.now())
  const { startedAt: _, ...usage } = state.usage
  const notice = toldToParent(context)
  const status = { type: 'status_changed', at: context.at(), status: lifecycle, text } as const
  const write: Write = {
    events: isNew || notice.others.length > 0 ? [{ ...status, ...notice.field }] : [],
    others: notice.others,
    head: { lifecycle, waiting, ...usage },
    wake: { exactly: wakeAt },
    requiresUnchangedLog: true,
    kind: 'outcome',
    releases: true,
  }
  return unlessLogMoved(context, () => context.commit('park', write))
}
