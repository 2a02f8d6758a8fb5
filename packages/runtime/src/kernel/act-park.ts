import type { RuntimeEvent } from '../event.ts'
import { isStoreError } from '../store/store.ts'
import type { DrainContext, Write } from './drain-context.ts'
import { endSession } from './end-session.ts'
import { isWaiting, openCalls } from './next.ts'
import { reportToParent } from './report.ts'

/** Nothing to do: says when to look again. False when mail came meanwhile. */
export async function park(context: DrainContext, wakeAt: number | null): Promise<boolean> {
  const { state } = context
  const waiting = [...state.interrupts.values()].filter(
    ({ answer, interrupt }) =>
      !answer && (interrupt.kind === 'approval' || interrupt.kind === 'input'),
  ).length
  const head = {
    lifecycle: lifecycleOf(context),
    waiting,
    tokens: state.usage.tokens,
    costUsd: state.usage.costUsd,
  }
  const status = statusEvent(context, head.lifecycle)
  try {
    await context.commit('park', {
      ...(status && { events: [status] }),
      head,
      wake: { exactly: wakeAt },
      expectsNoMail: true,
      isProgress: true,
    })
    return true
  } catch (error) {
    if (!isStoreError(error, 'LOG_MOVED')) throw error
    await context.catchUp()
    return false
  }
}

function lifecycleOf({
  state,
}: DrainContext): 'idle' | 'waiting' | 'stopped' | 'failed' | 'terminated' | 'running' {
  if (state.terminated) return 'terminated'
  if (state.session)
    return openCalls(state).some((call) => isWaiting(state, call)) ? 'waiting' : 'running'
  if (state.stop === 'stopped') return 'stopped'
  return state.lastSession?.outcome === 'failed' ? 'failed' : 'idle'
}

function statusEvent(
  context: DrainContext,
  status: ReturnType<typeof lifecycleOf>,
): RuntimeEvent | undefined {
  if (status === context.state.status) return undefined
  return { type: 'status_changed', at: context.at(), status }
}

/** Something in this thread ends every drain: it is parked, with the reason in its log. */
export async function failStuck(context: DrainContext): Promise<void> {
  const message = `The thread was taken up ${context.head.attempts} times without getting on; it is parked.`
  const error = {
    type: 'error_raised',
    at: context.at(),
    code: 'DRAIN_FAILED',
    message,
    hint: 'Resume it when the cause is mended.',
  } as const
  const ending = { outcome: 'failed', reason: 'drain_failed', message } as const
  const hadSession = context.state.session !== undefined
  if (hadSession) await endSession(context, ending)
  await parkStuck(context, {
    events: [error],
    // A parent may wait for a child that could not even begin.
    others: hadSession ? [] : await reportToParent(context, { ...ending, attachments: [] }),
  })
}

/** Somebody may ask to go on in the same moment; that must not be overwritten. */
async function parkStuck(
  context: DrainContext,
  write: Pick<Write, 'events' | 'others'>,
): Promise<void> {
  const now = context.environment.clock.now()
  try {
    await context.commit('fail_stuck', {
      ...write,
      head: { lifecycle: 'failed' },
      wake: context.state.resume ? { by: now } : { exactly: null },
      expectsNoMail: true,
      isProgress: true,
    })
  } catch (error) {
    if (!isStoreError(error, 'LOG_MOVED')) throw error
    await context.catchUp()
    await parkStuck(context, write)
  }
}
