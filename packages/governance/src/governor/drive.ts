import type { JsonValue } from '@skein/base'
import { rewindChunks } from './chunks.ts'
import { deliver, type Delivery, failAttempt } from './deliver.ts'
import { brokenResult, failSafe, settleChild } from './fail.ts'
import { type Answers, GovernedRun, type Waiting } from './governed-run.ts'
import { GovernanceError, messageOf, reason, type Reason, refusal } from '../contract/reason.ts'
import { conflict, type GovernedRequest, type Listeners, loadState } from './request.ts'
import { closedResult, ownersOf, reviveRequest } from './revive.ts'
import type { Init, Result, Run } from '../contract/run.ts'
import type { TaskClass } from '../contract/define-task-class.ts'
import { isClosed } from '../journal/state.ts'
import type { ChildData, ChildSettledData } from '../journal/events.ts'
import { newUuid, openRequest } from './open.ts'

export type Body = (run: Run) => Promise<JsonValue>

/** What was said while the request was pending, and who listens now. */
interface DriveOptions extends Listeners {
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

interface Child {
  readonly id: string
  readonly task: TaskClass
  readonly init: Partial<Pick<Init, 'identity' | 'input'>>
}

/** A nested run (UAICP §4.3): its own request in the same log, within the parent's bounds. */
async function driveChild(
  parent: GovernedRequest,
  child: Child,
  body: Body,
  answers: Answers,
): Promise<{ readonly value: JsonValue } | { readonly waiting: readonly Waiting[] }> {
  if (parent.state.state === 'plan') await parent.move('execute')
  const { id, task } = child
  const known = parent.state.children.get(id)
  if (known && known.task !== task.name) {
    throw conflict(parent, `child ${id} was ${known.task} before`)
  }
  if (known?.settled) return replayChild(parent, known.settled)
  const data = known ?? (await announce(parent, child))
  const request = await enter(parent, child, data)
  const { approve, onChunk } = parent.listeners
  const result = isClosed(request.state)
    ? await closedResult(request)
    : await drive(request, body, { approve, onChunk, answers })
  if (result.outcome === 'pending') return { waiting: toWaiting(result.waiting, result.rejected) }
  if (request.broken) throw request.broken
  await settleChild(parent, request, data)
  if (result.state === 'deliver') return { value: result.value }
  throw childFailed(task.name, result.reasons)
}

function toWaiting(
  requests: readonly Waiting['request'][],
  rejected: readonly Reason[] = [],
): Waiting[] {
  return requests.map((request, index) => {
    const why = rejected[index]
    return { request, ...(why && { rejected: why }) }
  })
}

/** The parent's log names the child before the child's first entry. */
async function announce(parent: GovernedRequest, { id, task }: Child): Promise<ChildData> {
  if (parent.state.opened.limits.depth < 1) {
    const detail = 'limits.depth of the outermost task class bounds it'
    throw refusal(task.name, [reason('DEPTH_EXCEEDED', task.name, detail)])
  }
  const request_id = newUuid(parent.core)
  const trace_id = newUuid(parent.core).replaceAll('-', '')
  const data = { child: id, request_id, trace_id, task: task.name }
  await parent.submit({ type: 'child_opened', data }, { outcome: 'pending', actor: parent.agent })
  return data
}

/** The child's request: opened now, or taken up where its journal ends. */
async function enter(
  parent: GovernedRequest,
  { id, task, init }: Child,
  { request_id, trace_id }: ChildData,
): Promise<GovernedRequest> {
  const loaded = await loadState(parent.core, request_id)
  const opened = loaded
    ? { request: reviveRequest(parent.core, loaded, task, parent), refused: [] }
    : await openRequest(
        parent.core,
        task,
        {
          identity: init.identity ?? parent.state.identity,
          input: init.input ?? (await parent.fetch(parent.state.opened.input_hash)),
          request_id,
          trace_id,
        },
        parent,
      )
  const { request, refused } = opened
  parent.children.set(id, request)
  if (parent.stopped) request.stop(parent.stopped)
  if (refused.length > 0) {
    await failSafe(request, { reasons: refused, missing: [] }, ownersOf(request))
  }
  return request
}

async function replayChild(
  parent: GovernedRequest,
  { hash, task, reasons = [] }: ChildSettledData,
): Promise<{ readonly value: JsonValue }> {
  if (hash === undefined) throw childFailed(task, reasons)
  return { value: await parent.fetch(hash) }
}

function childFailed(task: string, reasons: readonly Reason[]): GovernanceError {
  return refusal(task, [reason('CHILD_FAIL_SAFE', task), ...reasons])
}
