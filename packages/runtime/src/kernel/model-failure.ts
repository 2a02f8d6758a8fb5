import { AssistantMessage, UPPError } from '@skein/ai'
import { endSession } from './end-session.ts'
import { answerOf, type Asking } from './ask-model.ts'
import type { DrainContext } from './drain-context.ts'
import { isStop } from './interruption.ts'
import { logFailure } from './log-request.ts'
import { spentOn } from './usage.ts'

/** What was said before a stop stays. A failure is tried again later: the wait is data, not a sleep. */
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
  const attempt = step.failures + 1
  const wait = error.retryAfterMs ?? limits.modelBackoffMs * 2 ** (attempt - 1)
  const hasFallback = attempt < side.prompt.models.length
  const mayRetry = hasFallback || (isTransient(error) && attempt < limits.modelAttempts)
  const retryAt = new Date(clock.now() + (hasFallback ? 0 : wait)).toISOString()
  const { code, message } = error
  const log = logFailure(context, asking, error)
  const failure = {
    type: 'step_failed',
    at: context.at(),
    turnId: turn.id,
    stepId: step.id,
    attempt,
    code,
    message,
    ...(mayRetry && { retryAt }),
  } as const
  const usage = error.turn?.usage
  const spent = usage && usage.totalTokens > 0 ? [spentOn(asking.model, usage, context.at())] : []
  await context.commit('step_failed', {
    events: [...log.events, ...spent, failure],
    blobs: log.blobs,
    isProgress: true,
  })
  if (!mayRetry) await endSession(context, { outcome: 'failed', reason: 'model_error', message })
}

const transient = new Set<string>([
  'RATE_LIMITED',
  'NETWORK_ERROR',
  'TIMEOUT',
  'PROVIDER_ERROR',
  'INVALID_RESPONSE', // e.g. an answer that is not the JSON that was asked for
])

function isTransient({ code, shouldRetry }: UPPError): boolean {
  return shouldRetry ?? transient.has(code)
}

/** The text that had been streamed when the user pressed stop. Calls are not kept: they never ran. */
async function keepPartial(context: DrainContext, asking: Asking, error: unknown): Promise<void> {
  const partial = error instanceof UPPError ? error.turn : undefined
  if (!partial || partial.response.text === '') return
  const { id, timestamp, text } = partial.response
  const said = new AssistantMessage(text, undefined, { id, timestamp })
  const answer = await answerOf(context, asking, { ...partial, response: said })
  const log = logFailure(context, asking, error)
  await context.commit('partial_answer', { events: [...log.events, answer], blobs: log.blobs })
}
