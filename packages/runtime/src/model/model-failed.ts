import { commitResidency, residencyRefusal } from './residency.ts'
import { UPPError } from '@skein/ai'
import { judgeRetry } from '@skein/ai/engine'
import type { DrainContext } from '../context/drain-context.ts'
import { isStop } from '../contract/abort-reason.ts'
import type { StepFailed } from '../contract/event.ts'
import { endSession } from '../session/end-session.ts'
import { type RuntimeError, spendingLimitOf } from '../contract/error.ts'
import { logLoss } from './log.ts'
import { keepPartial } from './partial-answer.ts'
import type { Asking } from './asking.ts'

/** The longest delay between two requests that the runtime computes; a vendor may ask for a longer one. */
const MAX_BACKOFF_MS = 60_000

/**
 * Handles a failed request. If the side of the conversation has a fallback model that was not asked yet, that model
 * is asked next, without a delay; otherwise `judgeRetry` of `@skein/ai` decides whether the request is sent again.
 * There is no sleep: the time of the retry is stored in the log, the work on the thread ends, and the thread is
 * woken at that time. If the request is not sent again, e.g. because the vendor asks for a delay of more than 15
 * minutes, the session fails with the vendor's message.
 */
export async function modelFailed(
  context: DrainContext,
  asking: Asking,
  error: unknown,
): Promise<void> {
  const { signal } = context
  if (signal.aborted) {
    if (isStop(signal.reason)) await keepPartial(context, asking, error)
    return
  }
  if (!(error instanceof UPPError)) throw error
  const { limits, clock } = context.environment
  const { turn, step, side } = asking
  const limit = spendingLimitOf(error)
  if (limit) return waitForLimit(context, asking, limit)
  await commitResidency(context, residencyRefusal(error))
  const attempt = step.failures + 1
  const verdict = judgeRetry(error, attempt, {
    maxRequests: limits.modelAttempts,
    baseDelayMs: limits.modelBackoffMs,
    maxDelayMs: MAX_BACKOFF_MS,
    jitter: false,
    retryInvalidResponse: true, // e.g. an answer that is not the requested JSON
  })
  // No other model is asked after a rule of residency has refused all members: the next one has no such rule.
  const hasFallback = attempt < side.prompt.models.length && !residencyRefusal(error)
  const wait = hasFallback ? 0 : verdict.type === 'fail' ? undefined : verdict.ms
  const { code, message, hint } = error
  const failure: StepFailed = {
    type: 'step_failed',
    at: context.at(),
    turnId: turn.id,
    stepId: step.id,
    attempt,
    code,
    message,
    hint,
    retryAt: wait === undefined ? undefined : new Date(clock.now() + wait).toISOString(),
  }
  const log = logLoss(context, asking, error)
  const events = [...log.events, failure]
  await context.commit('step_failed', { kind: 'outcome', events, blobs: log.blobs })
  if (wait === undefined)
    await endSession(context, { outcome: 'failed', reason: 'model_error', message, hint })
}

/**
 * Records that a limit on spending stopped the request. The request was not sent, so it does not count
 * as a failed attempt. The thread waits until the period of the limit is over.
 */
async function waitForLimit(
  context: DrainContext,
  { turn, step }: Asking,
  { code, message, hint, retryAfterMs = 1 }: RuntimeError,
): Promise<void> {
  const failure: StepFailed = {
    type: 'step_failed',
    at: context.at(),
    turnId: turn.id,
    stepId: step.id,
    attempt: step.failures,
    code,
    message,
    hint,
    retryAt: new Date(context.environment.clock.now() + retryAfterMs).toISOString(),
  }
  await context.commit('step_failed', { kind: 'outcome', events: [failure] })
}
