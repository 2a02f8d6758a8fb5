import type { Actor } from '../contract/envelope.ts'
import { reason } from '../contract/reason.ts'
import type { FailedSafe, Receipt, Undo } from '../contract/run.ts'
import type { ChildData, ChildSettledData } from '../journal/events.ts'
import { effectKey, isClosed } from '../journal/governor-state.ts'
import { callsOf } from './candidate.ts'
import { finalStreaming, send } from './stream-chunks.ts'
import { loadState, reviveRequest } from './load.ts'
import type { GovernedRequest } from './request.ts'
import { effectsOf, findLive, toUndo, undoEffects } from './undo.ts'
import { type Failure, toFailure } from './missing-evidence.ts'

/** How a request fails. */
export interface FailOptions {
  /**
   * Leaves the writes of the request as they are: the request that it works for (see `GovernorOptions.delegates`)
   * undoes them, in order with its own.
   */
  readonly leavesWrites?: boolean
  /** Who decided that the request fails; the governor itself by default. */
  readonly actor?: Actor
}

/**
 * Fails a request safe (UAICP §7): writes the transition to `fail_safe`, undoes or
 * reports every write, then writes the last entry. If the process dies in between, `recover` continues after
 * the last entry in the journal.
 */
export async function failSafe(
  request: GovernedRequest,
  failure: Failure,
  { leavesWrites = false, actor }: FailOptions = {},
): Promise<FailedSafe> {
  const { state } = request
  try {
    await beginFailSafe(request, failure, actor)
    const undo = leavesWrites ? [] : await undoEffects(request)
    const { missing } = failure
    let { reasons } = failure
    const doubtful = undo.find(({ status }) => status === 'in_doubt')
    if (doubtful && !reasons.some(({ code }) => code === 'TOOL_IN_DOUBT'))
      reasons = [...reasons, reason('TOOL_IN_DOUBT', doubtful.tool)]
    const isLeft = undo.some(({ status }) => status === 'failed' || status === 'unknown')
    // The reason is there already if a child failed with it.
    if (isLeft && !reasons.some(({ code }) => code === 'ROLLBACK_FAILED'))
      reasons = [...reasons, reason('ROLLBACK_FAILED')]
    const undone = undo.flatMap((one) => state.undo.get(effectKey(one))?.settled ?? [])
    const streaming = finalStreaming(request, false)
    await request.submit(
      { type: 'failed_safe', data: { reasons, missing, undo: undone } },
      { outcome: 'uncertain', streaming, durable: true },
    )
    if (streaming) send(request, streaming)
    return toFailedSafe({ reasons, missing }, undo, await receiptOf(request))
  } catch (error) {
    if (!request.broken) throw error
    return brokenResult(request, failure)
  }
}

/** Moves a request to `fail_safe`, if it is not there, and undoes nothing yet. */
export async function beginFailSafe(
  request: GovernedRequest,
  failure: Failure,
  actor?: Actor,
): Promise<void> {
  await walkToVerify(request)
  if (request.state.state !== 'fail_safe') await request.move('fail_safe', failure, actor)
}

/**
 * Ends open children and moves the request to `verify` through every phase before it, because the log of a
 * request that passed intake must contain all phases, however the request ends.
 */
export async function walkToVerify(request: GovernedRequest): Promise<void> {
  if (request.state.state === 'plan') await request.move('execute')
  if (request.state.state !== 'execute') return
  await settleChildren(request)
  await request.move('verify')
}

/**
 * Builds the result of a request whose log cannot be written. Nothing is undone here; `recover` undoes
 * the writes later.
 */
export function brokenResult(request: GovernedRequest, failure?: Failure): FailedSafe {
  const { reasons = [], missing = [] } = failure ?? {}
  const end = { status: 'failed', error: 'not attempted: the log cannot be written' } as const
  const { children, undo: known } = request.state
  const undo = [...request.children].flatMap(([id, child]) =>
    children.get(id)?.settled ? [] : brokenResult(child).undo,
  )
  for (const one of effectsOf(request)) {
    const call = findLive(request, one.request_id)?.state.calls.get(one.call)
    undo.push(toUndo(one, call, known.get(effectKey(one))?.settled ?? end))
  }
  const why = [...(request.broken?.reasons ?? []), ...reasons]
  return toFailedSafe({ reasons: why, missing }, undo, placeOf(request))
}

/** Builds the result of a request that failed safe. */
export function toFailedSafe(
  { reasons, missing }: Failure,
  undo: readonly Undo[],
  receipt: Receipt,
): FailedSafe {
  return { state: 'fail_safe', outcome: 'uncertain', reasons, missing, undo, receipt }
}

/**
 * Returns where the request's entries are in the log. Once the request has ended, a checkpoint is
 * included if the log can make one.
 */
export async function receiptOf(request: GovernedRequest): Promise<Receipt> {
  const { state, core } = request
  const base = placeOf(request)
  if (!isClosed(state) || !core.audit.seal) return base
  try {
    return { ...base, checkpoint: await core.audit.seal() }
  } catch {
    // The entries are written, so the result is valid. Only the checkpoint is missing; it can be made
    // later.
    return base
  }
}

function placeOf({ state: { request_id, trace_id }, first, last }: GovernedRequest): Receipt {
  return { request_id, trace_id, first, last }
}

/** Ends the open children of a request that is failing, because nothing runs them any more. */
async function settleChildren(parent: GovernedRequest): Promise<void> {
  for (const data of parent.state.children.values()) {
    if (data.settled) continue
    const loadedState = await loadState(parent.core, data.request_id)
    // The child is named in the parent's log but has no entries: the process died before the child
    // started, so the child did nothing.
    if (!loadedState) continue
    const child = reviveRequest(parent.core, loadedState, undefined, parent)
    if (!isClosed(child.state)) {
      const why = reason('CANCELLED', data.request_id, 'its parent failed')
      await failSafe(child, await toFailure(child, [why]))
    }
    await settleChild(parent, child, data)
  }
}

/**
 * Records the end of a child in its parent's log. From then on the child's calls and writes count as the
 * parent's: if it fails, it undoes those that the child has not tried to undo, and reports all of them.
 */
export async function settleChild(
  parent: GovernedRequest,
  child: GovernedRequest,
  { child: id, request_id, trace_id, task }: ChildData,
): Promise<void> {
  const { delivered, failed, undo } = child.state
  const data: ChildSettledData = {
    child: id,
    request_id,
    trace_id,
    task,
    calls: callsOf(child),
    effects: effectsOf(child)
      .map((one) => undo.get(effectKey(one))?.settled ?? one)
      .reverse(),
    hash: delivered?.hash,
    reasons: failed?.reasons,
  }
  const outcome = delivered ? 'success' : 'failure'
  await parent.submit({ type: 'child_settled', data }, { outcome, actor: parent.agent })
}
