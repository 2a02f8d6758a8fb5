import { finalStreaming, send } from './chunks.ts'
import type { MissingNeed } from '../contract/evidence.ts'
import { effectKey, isClosed } from '../journal/state.ts'
import type { ChildData, ChildSettledData, FailedData } from '../journal/events.ts'
import { reason, type Reason } from '../contract/reason.ts'
import { type GovernedRequest, loadState } from './request.ts'
import type { FailedSafe, Receipt, Undo } from '../contract/run.ts'
import { effectsOf, type FindOwner, toUndo, undoEffects } from './undo.ts'
import { callsOf } from './candidate.ts'
import { ownersOf, reviveRequest } from './revive.ts'

/** Why the run fails, and which needs are open. */
export interface Failure {
  readonly reasons: readonly Reason[]
  readonly missing: readonly MissingNeed[]
}

/**
 * Ends a request safely (UAICP §7): the decision is written, then every write is inverted or reported, then
 * the end is written. After a crash in between it is taken up where the journal ends.
 */
export async function failSafe(
  request: GovernedRequest,
  failure: Failure,
  findOwner: FindOwner,
): Promise<FailedSafe> {
  try {
    if (request.state.state === 'execute') await settleChildren(request)
    await walkToVerify(request)
    if (request.state.state !== 'fail_safe') {
      await request.move('fail_safe', { reasons: failure.reasons })
    }
    const undo = await undoEffects(request, findOwner)
    const reasons = undo.some(({ status }) => status === 'failed' || status === 'unknown')
      ? [...failure.reasons, reason('ROLLBACK_FAILED')]
      : failure.reasons
    await close(request, { reasons, missing: failure.missing }, undo)
    return toFailedSafe({ ...failure, reasons }, undo, await receiptOf(request))
  } catch (error) {
    if (!request.broken) throw error
    return brokenResult(request, failure)
  }
}

/** A run that passed intake sees every phase in its log, however it ends. */
export async function walkToVerify(request: GovernedRequest): Promise<void> {
  if (request.state.state === 'plan') await request.move('execute')
  if (request.state.state === 'execute') await request.move('verify')
}

async function close(
  request: GovernedRequest,
  { reasons, missing }: Failure,
  undo: readonly Undo[],
): Promise<void> {
  const data: FailedData = {
    reasons,
    missing,
    undo: undo.flatMap((one) => request.state.undo.get(effectKey(one))?.settled ?? []),
  }
  const streaming = finalStreaming(request, false)
  const options = { outcome: 'uncertain' as const, streaming, durable: true }
  await request.submit({ type: 'failed_safe', data }, options)
  if (streaming) send(request, streaming)
}

/** The log is out of reach: nothing more is done, and what was done is left to `recover`. */
export function brokenResult(request: GovernedRequest, failure?: Failure): FailedSafe {
  const reasons = [...(request.broken?.reasons ?? []), ...(failure?.reasons ?? [])]
  const seen = new Map(reasons.map((one) => [`${one.code}/${one.subject ?? ''}`, one]))
  const end = { status: 'failed', error: 'not attempted: the log cannot be written' } as const
  const { calls, undo: known } = request.state
  const undo = effectsOf(request).map((one) =>
    toUndo(one, calls.get(one.call), known.get(effectKey(one))?.settled ?? end),
  )
  const { request_id, trace_id } = request.state
  const receipt = { request_id, trace_id, first: request.first, last: request.last }
  const rest = { reasons: [...seen.values()], missing: failure?.missing ?? [] }
  return toFailedSafe(rest, undo, receipt)
}

function toFailedSafe(
  { reasons, missing }: Failure,
  undo: readonly Undo[],
  receipt: Receipt,
): FailedSafe {
  return { state: 'fail_safe', outcome: 'uncertain', reasons, missing, undo, receipt }
}

/** Where the run stands in the log; sealed once it is over, where the log can. */
export async function receiptOf(request: GovernedRequest): Promise<Receipt> {
  const { state, core, first, last } = request
  const { request_id, trace_id } = state
  const base = { request_id, trace_id, first, last }
  if (!isClosed(state) || !core.audit.seal) return base
  try {
    return { ...base, checkpoint: await core.audit.seal() }
  } catch {
    // The entries are written; a checkpoint can be made later. The receipt says it has none.
    return base
  }
}

/** The parent takes over what an ended child did: its calls count, its writes are to be undone. */
export async function settleChild(
  parent: GovernedRequest,
  child: GovernedRequest,
  { child: id, request_id, trace_id, task }: ChildData,
): Promise<void> {
  const { delivered, failed } = child.state
  const data: ChildSettledData = {
    child: id,
    request_id,
    trace_id,
    task,
    calls: callsOf(child),
    effects: delivered ? effectsOf(child).reverse() : [],
    hash: delivered?.hash,
    reasons: failed?.reasons,
  }
  const outcome = delivered ? 'success' : 'failure'
  await parent.submit({ type: 'child_settled', data }, { outcome, actor: parent.agent })
}

/** Ends the children of a request that fails and that nobody runs any more. */
export async function settleChildren(parent: GovernedRequest): Promise<void> {
  for (const data of parent.state.children.values()) {
    if (data.settled) continue
    const loaded = await loadState(parent.core, data.request_id)
    // Announced, but the process died before the child wrote its first entry: it did nothing.
    if (!loaded) continue
    const child = reviveRequest(parent.core, loaded, undefined, parent)
    if (!isClosed(child.state)) {
      const reasons = [reason('CANCELLED', data.request_id, 'its parent failed')]
      await failSafe(child, { reasons, missing: [] }, ownersOf(child))
    }
    await settleChild(parent, child, data)
  }
}
