import type { JsonValue } from '@skein/base'
import { reason, type Reason, type ReasonCode } from '../contract/reason.ts'
import {
  type GovernedCallState,
  isInDoubt,
  openReviews,
  standingCalls,
} from '../journal/governor-state.ts'
import { judge, toAction } from './judge.ts'
import { conflict, type GovernedRequest } from './request.ts'
import { parseFrozen, tryCanonicalJson } from '../contract/envelope.ts'
import type { VerificationReport } from '../contract/evidence.ts'
import type { Delivered, FailedSafe, Undo } from '../contract/run.ts'
import { finalStreaming, send } from './stream-chunks.ts'
import { beginFailSafe, failSafe, receiptOf, toFailedSafe, walkToVerify } from './fail.ts'
import { findOwner, toUndo, undoEffects } from './undo.ts'
import { collectEvidence } from './evidence.ts'
import { type Failure, findMissing, toFailure } from './missing-evidence.ts'
import { runVerifiers } from './verify.ts'

/** The result of `deliver` or `fail`. */
export type Delivery =
  | { readonly type: 'delivered'; readonly result: Delivered<JsonValue> }
  /**
   * A repair (UAICP §4.1): the caller has to start attempt `attempt`; `why`
   * contains the reasons why the previous attempt failed.
   */
  | {
      readonly type: 'repair'
      readonly attempt: number
      readonly why: readonly Reason[]
      /** The writes of the failed attempt, which were undone first, or have no rollback. */
      readonly undo: readonly Undo[]
    }
  | { readonly type: 'fail_safe'; readonly result: FailedSafe }

/** The result of `judgeCandidate`. */
export type JudgedCandidate =
  | Exclude<Delivery, { readonly type: 'fail_safe' }>
  /** The request fails; no write is undone yet. */
  | { readonly type: 'failing'; readonly failure: Failure }

/** Delivers a candidate, has the request tried again, or ends it without delivery and undoes its writes. */
export async function deliver(request: GovernedRequest, candidate: unknown): Promise<Delivery> {
  return ended(request, await judgeCandidate(request, candidate))
}

async function ended(request: GovernedRequest, judgement: JudgedCandidate): Promise<Delivery> {
  if (judgement.type !== 'failing') return judgement
  return { type: 'fail_safe', result: await failSafe(request, judgement.failure) }
}

/**
 * Decides whether a candidate is delivered. Throws if a call, review or child is still open. Otherwise the
 * verifiers check the evidence. If any condition of delivery is not met, the request is repaired, within its
 * limit of attempts, or moves to `fail_safe`.
 */
export async function judgeCandidate(
  request: GovernedRequest,
  candidate: unknown,
): Promise<JudgedCandidate> {
  const { state } = request
  if (state.state !== 'plan' && state.state !== 'execute') {
    throw conflict(request, `it is in ${state.state}`)
  }
  const openWork = findOpenWork(request)
  if (openWork) throw conflict(request, openWork)
  const text = tryCanonicalJson(candidate === undefined ? null : candidate)
  await walkToVerify(request)
  if (text === undefined) {
    const reasons = [reason('RUN_ERROR', 'candidate', 'it is not JSON')]
    return repairOrFail(request, { reasons, missing: [] })
  }
  const value = parseFrozen(text)
  const { evidence, reasons: unreadable } = await collectEvidence(request)
  const verdicts = await runVerifiers(request, evidence, value)
  const { missing, reasons: needed } = findMissing(request, evidence)
  const open = await findOpenReasons(request)
  const reasons = [...open, ...unreadable, ...needed, ...verdicts.flatMap((one) => one.reasons)]
  if (reasons.length > 0) {
    // The reasons of refused calls are added because they often explain what is missing; by themselves
    // they do not prevent delivery.
    return repairOrFail(request, { reasons: [...reasons, ...state.refusals], missing })
  }

  const reports = verdicts.map(({ report }) => report)
  const data = {
    hash: await request.keep(text, { durable: true }),
    evidence: evidence.map(({ evidence_id }) => evidence_id),
    reports: reports.map(({ report_id }) => report_id),
  }
  const streaming = finalStreaming(request, true)
  await request.submit(
    { type: 'delivered', data },
    { state: 'deliver', outcome: 'success', streaming, durable: true },
  )
  if (streaming) send(request, streaming)
  const receipt = await receiptOf(request)
  return { type: 'delivered', result: toDelivered({ value, evidence, reports, receipt }) }
}

function toDelivered(parts: Omit<Delivered<JsonValue>, 'state' | 'outcome'>): Delivered<JsonValue> {
  return { state: 'deliver', outcome: 'success', ...parts }
}

/**
 * Describes a call, review or child that is still open; undefined if there is none. All of them have to
 * end before delivery (UAICP §4.2).
 */
function findOpenWork({ running, state }: GovernedRequest): string | undefined {
  const [call] = running.keys()
  if (call !== undefined) return `call ${call} is running`
  // An open approval request does not count if its call has ended: the call was refused, or it needed no
  // approval any more after its tool or the policy had changed.
  const review = openReviews(state).find(({ call }) => !hasEnded(state.calls.get(call)?.status))
  if (review) return `call ${review.call} waits for approval`
  for (const { call: id, status } of state.calls.values()) {
    if (status === 'started') return `call ${id} has no end`
  }
  for (const { child, settled } of state.children.values()) {
    if (!settled) return `child ${child} is running`
  }
  return undefined
}

function hasEnded(status: GovernedCallState['status'] | undefined): boolean {
  return status === 'refused' || status === 'done' || status === 'failed'
}

/** Returns the reasons that prevent delivery, other than missing evidence and failed verification. */
async function findOpenReasons(request: GovernedRequest): Promise<Reason[]> {
  const { state, core, stopped, task, policyHash } = request
  const reasons: Reason[] = stopped ? [stopped] : []
  const { deadline } = state.opened.limits
  if (!stopped && deadline !== undefined && core.clock.now() >= deadline) {
    reasons.push(reason('DEADLINE_EXCEEDED'))
  }
  for (const call of task.acceptInDoubt ? [] : state.calls.values()) {
    if (isInDoubt(call)) reasons.push(reason('TOOL_IN_DOUBT', call.tool))
  }
  for (const { task: child, attempt, settled } of state.children.values()) {
    if (attempt !== state.attempt || settled?.outcome === 'success') continue
    reasons.push(reason('CHILD_FAIL_SAFE', child), ...(settled?.reasons ?? []))
  }
  // If policies have changed since a write was allowed, they are asked about it again before delivery.
  for (const call of standingCalls(state)) {
    if (call.policy_hash === undefined || call.policy_hash === policyHash) continue
    const args = await request.fetch(call.args_hash)
    const { decision } = await judge(request, toAction(request, { ...call, args }))
    if (decision.effect !== 'deny') continue
    reasons.push(...(decision.reasons ?? [reason('POLICY_BLOCKED', call.tool)]))
  }
  return reasons
}

/** Ends an attempt that has nothing to deliver, for example because the body threw or the run was stopped. */
export async function failAttempt(
  request: GovernedRequest,
  reasons: readonly Reason[],
): Promise<Delivery> {
  await walkToVerify(request)
  return ended(request, await repairOrFail(request, await toFailure(request, reasons)))
}

/** Reasons for which a repair is useless, because another attempt would fail for the same reason. */
const FINAL: ReadonlySet<ReasonCode> = new Set<ReasonCode>([
  'CANCELLED',
  'DEADLINE_EXCEEDED',
  'BUDGET_EXCEEDED',
  'AUDIT_UNAVAILABLE',
  'STATE_CONFLICT',
  'TOOL_IN_DOUBT',
  'APPROVAL_DENIED',
  'IDENTITY_INVALID',
])

async function repairOrFail(request: GovernedRequest, failure: Failure): Promise<JudgedCandidate> {
  const { repair, name } = request.task
  const { state } = request
  const canChange = !failure.reasons.some(({ code }) => FINAL.has(code))
  let { reasons } = failure
  if (repair && canChange && state.attempt <= repair.max) {
    // A new attempt starts only when every write of the failed attempt was undone or has no rollback.
    // With `undoFirst: false` nothing is undone first.
    const undo = repair.undoFirst === false ? [] : await undoEffects(request)
    if (undo.every(({ status }) => status === 'done' || status === 'skipped')) {
      await request.move(repair.to ?? 'plan', { reasons })
      return { type: 'repair', attempt: state.attempt, why: reasons, undo }
    }
  } else if (repair && canChange) {
    reasons = [...reasons, reason('REPAIR_EXHAUSTED', name, `${repair.max} repairs`)]
  }
  const finalFailure = { ...failure, reasons }
  await beginFailSafe(request, finalFailure)
  return { type: 'failing', failure: finalFailure }
}

/** Rebuilds the result of a request that has ended, from its journal and payloads. */
export async function closedResult(
  request: GovernedRequest,
): Promise<Delivered<JsonValue> | FailedSafe> {
  const { delivered, failed, reports: recorded } = request.state
  const receipt = await receiptOf(request)
  if (failed) {
    const undo: Undo[] = []
    for (const one of failed.undo) {
      const owner = await findOwner(request, one)
      undo.push(toUndo(one, owner?.state.calls.get(one.call), one))
    }
    return toFailedSafe(failed, undo, receipt)
  }
  if (!delivered) throw conflict(request, 'it has not ended')
  const value = await request.fetch(delivered.hash)
  const { evidence } = await collectEvidence(request)
  const reports: VerificationReport[] = []
  for (const { report_hash } of recorded) {
    // The cast is safe: the payload with this hash is a report that `runVerifiers` stored.
    reports.push((await request.fetch(report_hash)) as unknown as VerificationReport)
  }
  return toDelivered({ value, evidence, reports, receipt })
}
