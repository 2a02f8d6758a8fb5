import type { JsonValue } from '@skein/base'
import { GovernanceError, thrownText, reason, refusal, type Reason } from '../contract/reason.ts'
import type { Result, Run, Init } from '../contract/run.ts'
import type { ChildData } from '../journal/events.ts'
import { isClosed } from '../journal/governor-state.ts'
import { countVoid } from './stream-chunks.ts'
import { closedResult, deliver, failAttempt, type Delivery } from './deliver.ts'
import { brokenResult, failSafe, settleChild } from './fail.ts'
import { GovernedRun, type ApprovalAnswers, type Waiting } from './governed-run.ts'
import { loadState, reviveRequest } from './load.ts'
import { newUuid, openRequest } from './open.ts'
import { conflict, type GovernedRequest, type Listeners, untilStopped } from './request.ts'
import type { TaskClass } from '../contract/governed.ts'

/** A child run that a body starts with `run.child`. */
export interface Child {
  readonly id: string
  readonly task: TaskClass
  readonly init: Partial<Pick<Init, 'identity' | 'input'>>
  readonly body: (run: Run) => Promise<JsonValue>
}

/**
 * The function that opens and drives a child. It is passed to `GovernedRun`, because importing it there would
 * make this file and governed-run.ts import each other.
 */
export type RunChild = (
  parent: GovernedRequest,
  child: Child,
  answers: ApprovalAnswers,
) => Promise<{ readonly value: JsonValue } | { readonly waiting: readonly Waiting[] }>

/** The user's code that runs as one governed request. */
export type Body = (run: Run) => Promise<JsonValue>

/** The answers that people gave while the request waited, and the callbacks to use from now on. */
export interface DriveOptions extends Listeners {
  readonly signal?: AbortSignal
  readonly answers?: ApprovalAnswers
}

const NO_ANSWERS: ApprovalAnswers = { tokens: [], denials: new Map() }

/** How an execution of the body ended: with a candidate, or with the reasons why there is none. */
type Ended = { readonly value: JsonValue } | { readonly reasons: readonly Reason[] }

/**
 * Runs a body over an open request, once per attempt, until the request is delivered, ends without delivery
 * (fails safe), or waits for people.
 */
export async function drive(
  request: GovernedRequest,
  body: Body,
  options: DriveOptions,
): Promise<Result<JsonValue>> {
  const { approve, onChunk, signal, answers = NO_ANSWERS } = options
  request.listeners = { approve, onChunk }
  const release = watch(request, signal)
  try {
    for (;;) {
      const input = await request.fetch(request.state.opened.input_hash)
      const run = new GovernedRun(request, input, answers, driveChild)
      // The body repeats the chunks of this attempt.
      request.chunkIndex = countVoid(request.state)
      const end = await callBody(request, body, run)
      run.end()
      await request.idle()
      if (request.broken) return brokenResult(request)
      if (run.waiting.length > 0 && !request.stopped) {
        const rejections = run.waiting.flatMap((one) => one.rejected ?? [])
        return {
          state: 'execute',
          outcome: 'pending',
          waiting: run.waiting.map((one) => one.request),
          request_id: request.state.request_id,
          rejected: rejections.length > 0 ? rejections : undefined,
        }
      }
      const delivery = await conclude(request, end)
      if (delivery.type !== 'repair') return delivery.result
    }
  } catch (error) {
    if (request.broken) return brokenResult(request)
    throw error
  } finally {
    release()
  }
}

/**
 * Executes the body. If the run is stopped from outside, the body may continue, but its calls throw and its
 * result is ignored.
 */
async function callBody(request: GovernedRequest, body: Body, run: GovernedRun): Promise<Ended> {
  const work = async (): Promise<JsonValue> => {
    const value = await body(run)
    // A body may return while calls that it did not await are still running. They belong to this
    // attempt, so the attempt waits for them.
    await request.idle()
    return value
  }
  try {
    return { value: await untilStopped(request, work()) }
  } catch (error) {
    if (error instanceof GovernanceError) return { reasons: error.reasons }
    return { reasons: [reason('RUN_ERROR', undefined, thrownText(error))] }
  }
}

async function conclude(request: GovernedRequest, ended: Ended): Promise<Delivery> {
  if (request.stopped) return failAttempt(request, [request.stopped])
  if ('reasons' in ended) return failAttempt(request, ended.reasons)
  try {
    return await deliver(request, ended.value)
  } catch (error) {
    // `deliver` throws when calls are open, for example because a resumed body did not repeat a call that
    // it had started.
    if (request.broken || !(error instanceof GovernanceError)) throw error
    return failAttempt(request, error.reasons)
  }
}

/**
 * Stops the run at its deadline or when the caller's signal is aborted. Returns a function that ends the
 * watch.
 */
function watch(request: GovernedRequest, signal: AbortSignal | undefined): () => void {
  const { core, state } = request
  const { deadline } = state.opened.limits
  const cancel = (): void => request.stop(reason('CANCELLED', state.request_id))
  if (signal?.aborted) cancel()
  signal?.addEventListener('abort', cancel, { once: true })
  let cancelTimer: (() => void) | undefined
  const arm = (): void => {
    const remaining = (deadline ?? Infinity) - core.clock.now()
    if (remaining <= 0) request.stop(reason('DEADLINE_EXCEEDED', state.request_id))
    // The delay of a timer is limited, so a timer may fire before the deadline; then it is set again for
    // the remaining time.
    else if (deadline !== undefined) cancelTimer = core.timer(remaining, arm)
  }
  arm()
  return () => {
    signal?.removeEventListener('abort', cancel)
    cancelTimer?.()
  }
}

/**
 * Runs a child (UAICP §4.3): a separate request in the same log, within the limits of its parent. Returns
 * the delivered value, or the approval requests that the child waits for; throws if the child fails.
 */
async function driveChild(
  parent: GovernedRequest,
  child: Child,
  answers: ApprovalAnswers,
): Promise<{ readonly value: JsonValue } | { readonly waiting: readonly Waiting[] }> {
  const { core, state } = parent
  await parent.execute()
  const { id, task, body } = child
  const record = state.children.get(id)
  if (record && record.task !== task.name) {
    throw conflict(parent, `child ${id} was ${record.task} before`)
  }
  if (record?.settled) {
    const { hash, reasons } = record.settled
    if (hash === undefined) throw childFailed(task.name, reasons)
    return { value: await parent.fetch(hash) }
  }
  let data: ChildData | undefined = record
  if (!data) {
    if (state.opened.limits.depth < 1) {
      const detail = 'limits.depth of the outermost task class bounds it'
      throw refusal(task.name, [reason('DEPTH_EXCEEDED', task.name, detail)])
    }
    // The child is recorded in the parent's log before it writes its first entry, so that it can be found
    // after a crash.
    const request_id = newUuid(core)
    data = { child: id, request_id, trace_id: newUuid(core).replaceAll('-', ''), task: task.name }
    await parent.submit({ type: 'child_opened', data }, { outcome: 'pending', actor: parent.agent })
  }
  const request = await enterChild(parent, child, data)
  const { approve, onChunk } = parent.listeners
  const result = isClosed(request.state)
    ? await closedResult(request)
    : await drive(request, body, { approve, onChunk, answers })
  if (result.outcome === 'pending') {
    const { waiting, rejected = [] } = result
    return { waiting: waiting.map((asked, at) => ({ request: asked, rejected: rejected[at] })) }
  }
  if (request.broken) throw request.broken
  await settleChild(parent, request, data)
  if (result.state === 'deliver') return { value: result.value }
  throw childFailed(task.name, result.reasons)
}

/** Opens the child's request, or loads it from the journal if it was opened before. */
async function enterChild(
  parent: GovernedRequest,
  { id, task, init }: Child,
  { request_id, trace_id }: ChildData,
): Promise<GovernedRequest> {
  const { core, state } = parent
  const loadedState = await loadState(core, request_id)
  const identity = init.identity ?? state.identity
  const { request, refused } = loadedState
    ? { request: reviveRequest(core, loadedState, task, parent), refused: undefined }
    : await openRequest(
        core,
        task,
        {
          identity,
          input: init.input ?? (await parent.fetch(state.opened.input_hash)),
          request_id,
          trace_id,
        },
        parent,
      )
  parent.children.set(id, request)
  if (parent.stopped) request.stop(parent.stopped)
  if (refused) await failSafe(request, refused)
  return request
}

function childFailed(task: string, reasons: readonly Reason[] = []): GovernanceError {
  return refusal(task, [reason('CHILD_FAIL_SAFE', task), ...reasons])
}
