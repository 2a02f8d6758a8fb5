import { retryWhenLogMoved, unlessLogMoved } from '../commit/log-moved.ts'
import { reportToParent } from '../children/report.ts'
import type { DrainContext } from '../context/drain-context.ts'
import type { Write } from '../context/write.ts'
import type { FailureCause, RuntimeEvent } from '../contract/event.ts'
import { endSession, isDisposable, reportedEnd } from '../session/end-session.ts'
import { isAwaited } from '../state/kernel-state.ts'
import { isStoreError } from '../store/store-error.ts'

/**
 * Fails a thread for which `next` returned the same action twice, although the first one changed nothing: `next`
 * would return it for ever. Returns true if the thread has no session to fail, so that the work on it must end.
 */
export async function failWithoutProgress(context: DrainContext, action: string): Promise<boolean> {
  const { state } = context
  const message = `The thread cannot continue: the action "${action}" changed nothing at event ${state.seq}.`
  const error: RuntimeEvent = {
    type: 'error_raised',
    at: context.at(),
    code: 'NO_PROGRESS',
    message,
    hint: 'This is a defect of the runtime; please report it. A new message starts another session.',
  }
  if (state.session) {
    const ending = { outcome: 'failed', reason: 'no_progress', message } as const
    await endSession(context, { ...ending, spoken: [error] })
    return false
  }
  const head = { lifecycle: 'failed' } as const
  const write: Write = { kind: 'outcome', events: [error], head, wake: { exactly: null } }
  const last: Write = { ...write, requiresUnchangedLog: true, releases: true }
  return unlessLogMoved(context, () => context.commit('park', last))
}

/**
 * Marks a thread as failed that failed too often without progress, and writes the cause to its log. Needs
 * neither the agent nor the governor of the thread, because a missing agent or governor may be the cause.
 */
export async function failStuck(context: DrainContext, cause: FailureCause): Promise<void> {
  try {
    await giveUp(context, cause, { endsSession: true })
  } catch (error) {
    if (isStoreError(error, 'FENCED') || (isStoreError(error) && error.code.startsWith('STORE_')))
      throw error
    // The end of the session may be what fails. The session then stays open, and the next message continues it.
    context.dropGovernor()
    await context.catchUp()
    await giveUp(context, cause, { endsSession: false })
  }
}

async function giveUp(
  context: DrainContext,
  cause: FailureCause,
  { endsSession }: { readonly endsSession: boolean },
): Promise<void> {
  const { environment, state } = context
  const { drainAttempts } = environment.limits
  const name = cause.code === undefined ? '' : `${cause.code}: `
  const message = `The thread is parked: ${drainAttempts} attempts to continue it failed. ${name}${cause.message}`
  const error: RuntimeEvent = {
    type: 'error_raised',
    at: context.at(),
    code: 'DRAIN_FAILED',
    message,
    hint:
      cause.hint ??
      `Fix the cause, then ${endsSession ? 'resume the thread' : 'send the thread a message'}.`,
    cause,
  }
  const ending = { outcome: 'failed', reason: 'drain_failed', message, cause } as const
  const hadSession = endsSession && state.session !== undefined
  const wasOver = state.terminated !== undefined
  if (hadSession) await endSession(context, ending)
  // The parent needs an answer if there was no session to end, or if one of its calls still waits for
  // the answer to a message in the queue. A child that was over before has reported already.
  const isHeard = (hadSession || wasOver) && !isAwaited(context.state)
  const { changes: others, blobs } = isHeard
    ? { changes: [], blobs: [] }
    : await reportToParent(context, { ...ending, attachments: [] })
  const isOver = isDisposable(context.state)
  const events = isOver && !context.state.terminated ? [error, reportedEnd(context)] : [error]
  const lifecycle = isOver ? 'terminated' : 'failed'
  const write: Write = { events, others, blobs, head: { lifecycle }, releases: true }
  const park = async (): Promise<void> => {
    // A request to resume may just have arrived; its wake-up must not be removed. A child that ends here must run
    // once more to terminate its own children; if that fails too, the child is left as it is.
    const mustGoOn = context.state.resume !== undefined || (isOver && !wasOver)
    const wake = mustGoOn ? { by: environment.clock.now() } : { exactly: null }
    await context.commit('fail_stuck', {
      ...write,
      wake,
      requiresUnchangedLog: true,
      kind: 'outcome',
    })
  }
  await retryWhenLogMoved(park, { thread: context })
}
