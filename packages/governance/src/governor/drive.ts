import type { JsonValue } from '@skein/base'
import { rewindChunks } from './chunks.ts'
import { deliver, failAttempt, type Delivery } from './deliver.ts'
import { driveChild } from './drive-child.ts'
import { brokenResult } from './fail.ts'
import { GovernedRun, type Answers, type Waiting } from './governed-run.ts'
import { GovernanceError, messageOf, reason, type Reason } from '../reason.ts'
import type { GovernedRequest, Listeners } from './request.ts'
import { ownersOf } from './revive.ts'
import type { Result } from '../result.ts'
import type { Run } from '../run.ts'

export type Body = (run: Run) => Promise<JsonValue>

/** What was said while the request was pending, and who listens now. */
export interface DriveOptions extends Listeners {
  readonly signal?: AbortSignal
  readonly answers?: Answers
}

const NO_ANSWERS: Answers = { tokens: [], denials: new Map() }

/** Runs a body over an open request until it is delivered, failed safe, or waits for people. */
export async function drive(
  request: GovernedRequest,
  body: Body,
  options: DriveOptions,
): Promise<Result<JsonValue>> {
  const { approve, onChunk, answers = NO_ANSWERS } = options
  request.listeners = { approve, onChunk }
  const release = watch(request, options.signal)
  try {
    for (;;) {
      const { ended, run } = await pass(request, body, answers)
      if (request.broken) return brokenResult(request)
      if (run.waiting.length > 0 && !request.stopped) return toPending(request, run.waiting)
      const delivery = await conclude(request, ended)
      if (delivery.type !== 'repair') return delivery.result
    }
  } catch (error) {
    if (request.broken) return brokenResult(request)
    throw error
  } finally {
    release()
  }
}

type Ended =
  | { readonly type: 'candidate'; readonly value: JsonValue }
  | { readonly type: 'failed'; readonly reasons: readonly Reason[] }

/** One pass over the body; ends when nothing it started runs any more. */
async function pass(
  request: GovernedRequest,
  body: Body,
  answers: Answers,
): Promise<{ readonly ended: Ended; readonly run: GovernedRun }> {
  const input = await request.fetch(request.state.opened.input_hash)
  const run = new GovernedRun(request, input, answers, driveChild)
  rewindChunks(request)
  const ended = await Promise.race([callBody(body, run), stopOf(request)])
  if (ended.type === 'candidate') await Promise.race([request.idle(), stopOf(request)])
  run.end()
  await request.idle()
  return { ended, run }
}

async function callBody(body: Body, run: GovernedRun): Promise<Ended> {
  try {
    return { type: 'candidate', value: await body(run) }
  } catch (error) {
    const reasons = error instanceof GovernanceError ? error.reasons : undefined
    return {
      type: 'failed',
      reasons: reasons ?? [reason('RUN_ERROR', undefined, messageOf(error))],
    }
  }
}

/** Resolves when the run is stopped from outside; the body may go on, but to no effect. */
function stopOf({ controller: { signal } }: GovernedRequest): Promise<Ended> {
  return new Promise((resolve) => {
    const stop = (): void => {
      const { reasons } = signal.reason as GovernanceError
      resolve({ type: 'failed', reasons })
    }
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
}

async function conclude(request: GovernedRequest, ended: Ended): Promise<Delivery> {
  const findOwner = ownersOf(request)
  const reasons = request.stopped ? [request.stopped] : ended.type === 'failed' ? ended.reasons : []
  if (ended.type === 'failed' || request.stopped) return failAttempt(request, reasons, findOwner)
  try {
    return await deliver(request, ended.value, findOwner)
  } catch (error) {
    // A body that took another way than before leaves calls without an end.
    if (request.broken || !(error instanceof GovernanceError)) throw error
    return failAttempt(request, error.reasons, findOwner)
  }
}

function toPending(request: GovernedRequest, waiting: readonly Waiting[]): Result<JsonValue> {
  const rejected = waiting.flatMap((one) => (one.rejected ? [one.rejected] : []))
  return {
    state: 'execute',
    outcome: 'pending',
    waiting: waiting.map((one) => one.request),
    request_id: request.state.request_id,
    ...(rejected.length > 0 && { rejected }),
  }
}

/** Ties the run to its deadline and to the caller's signal. */
function watch(request: GovernedRequest, signal: AbortSignal | undefined): () => void {
  const { core, state } = request
  const { deadline } = state.opened.limits
  const cancel = (): void => request.stop(reason('CANCELLED', state.request_id))
  if (signal?.aborted) cancel()
  signal?.addEventListener('abort', cancel, { once: true })
  let cancelTimer: (() => void) | undefined
  const arm = (): void => {
    const left = (deadline ?? Number.POSITIVE_INFINITY) - core.clock.now()
    if (left <= 0) request.stop(reason('DEADLINE_EXCEEDED', state.request_id))
    // A timer may be shorter than asked for; then there is time left when it fires.
    else if (deadline !== undefined) cancelTimer = core.timer(left, arm)
  }
  arm()
  return () => {
    signal?.removeEventListener('abort', cancel)
    cancelTimer?.()
  }
}
