import { canonicalJson, deepFreeze, type JsonValue } from '@skein/base'
import { finalStreaming, send } from './chunks.ts'
import { hashText } from '../contract/envelope.ts'
import type { Evidence } from '../contract/evidence.ts'
import { failSafe, type Failure, receiptOf, settleChildren, walkToVerify } from './fail.ts'
import { openReviews } from '../journal/state.ts'
import {
  collectEvidence,
  findMissing,
  findOpenReasons,
  runVerifiers,
  type Verdict,
} from './verify.ts'
import { reason, type Reason, type ReasonCode } from '../contract/reason.ts'
import { conflict, type GovernedRequest } from './request.ts'
import type { Delivered, FailedSafe } from '../contract/run.ts'
import { type FindOwner, undoEffects } from './undo.ts'

/** What the pre-deliver gate says. */
export type Delivery =
  | { readonly type: 'delivered'; readonly result: Delivered<JsonValue> }
  /** Bounded repair (UAICP §4.1): begin attempt `attempt`, knowing why the last one failed. */
  | { readonly type: 'repair'; readonly attempt: number; readonly why: readonly Reason[] }
  | { readonly type: 'fail_safe'; readonly result: FailedSafe }

/**
 * The pre-deliver gate. Nothing may be open. Verifiers look at the evidence; then every
 * invariant has to hold, or the run is repaired within its bound, or it fails safe.
 */
export async function deliver(
  request: GovernedRequest,
  candidate: unknown,
  findOwner: FindOwner,
): Promise<Delivery> {
  const { state } = request
  if (state.state !== 'plan' && state.state !== 'execute') {
    throw conflict(request, `it is in ${state.state}`)
  }
  const open = findOpenWork(request)
  if (open) throw conflict(request, open)
  const text = toText(candidate)
  await walkToVerify(request)
  if (text === undefined) {
    const failure = { reasons: [reason('RUN_ERROR', 'candidate', 'it is not JSON')], missing: [] }
    return repairOrFail(request, failure, findOwner)
  }
  const value = deepFreeze(JSON.parse(text) as JsonValue)
  const { evidence, verdicts, ...failure } = await checkInvariants(request, value)
  if (failure.reasons.length > 0) return repairOrFail(request, failure, findOwner)
  return commit(request, { value, text, evidence, verdicts })
}

/** Ends an attempt that has no candidate: the body threw, or the run was stopped. */
export async function failAttempt(
  request: GovernedRequest,
  reasons: readonly Reason[],
  findOwner: FindOwner,
): Promise<Delivery> {
  if (request.state.state === 'execute') await settleChildren(request)
  await walkToVerify(request)
  const { evidence } = await collectEvidence(request)
  const { missing, reasons: needed } = findMissing(request, evidence)
  return repairOrFail(request, { reasons: [...reasons, ...needed], missing }, findOwner)
}

/** UAICP §4.2: the whole graph first. */
function findOpenWork({ running, state }: GovernedRequest): string | undefined {
  const [call] = running.keys()
  if (call !== undefined) return `call ${call} is running`
  const [review] = openReviews(state)
  if (review && state.calls.get(review.call)?.status !== 'refused') {
    return `call ${review.call} waits for approval`
  }
  for (const { call: id, status } of state.calls.values()) {
    if (status === 'started') return `call ${id} has no end`
  }
  for (const { child, settled } of state.children.values()) {
    if (!settled) return `child ${child} is running`
  }
  return undefined
}

interface Findings extends Failure {
  readonly evidence: readonly Evidence[]
  readonly verdicts: readonly Verdict[]
}

/** All that must be true, looked at each time; a reason for everything that is not. */
async function checkInvariants(request: GovernedRequest, value: JsonValue): Promise<Findings> {
  const { evidence, reasons: unreadable } = await collectEvidence(request)
  const verdicts = await runVerifiers(request, evidence, value)
  const { missing, reasons: needed } = findMissing(request, evidence)
  const open = await findOpenReasons(request)
  const reasons = [...open, ...unreadable, ...needed, ...verdicts.flatMap((one) => one.reasons)]
  // What was refused on the way explains what is missing; by itself it forbids nothing.
  if (reasons.length > 0) reasons.push(...request.state.refusals)
  return { evidence, verdicts, missing, reasons }
}

interface Accepted {
  readonly value: JsonValue
  readonly text: string
  readonly evidence: readonly Evidence[]
  readonly verdicts: readonly Verdict[]
}

async function commit(
  request: GovernedRequest,
  { value, text, evidence, verdicts }: Accepted,
): Promise<Delivery> {
  const hash = hashText(text)
  await request.put(hash, text, { durable: true })
  const reports = verdicts.map(({ report }) => report)
  const data = {
    hash,
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
  const end = { state: 'deliver', outcome: 'success' } as const
  return { type: 'delivered', result: { ...end, value, evidence, reports, receipt } }
}

/** Reasons that another attempt cannot change. */
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

async function repairOrFail(
  request: GovernedRequest,
  failure: Failure,
  findOwner: FindOwner,
): Promise<Delivery> {
  const { repair } = request.task
  const { state } = request
  const canChange = !failure.reasons.some(({ code }) => FINAL.has(code))
  let { reasons } = failure
  if (repair && canChange && state.attempt <= repair.max) {
    const undone = repair.undoFirst === false || (await undoAll(request, findOwner))
    if (undone) {
      await request.move(repair.to ?? 'plan', { reasons })
      return { type: 'repair', attempt: state.attempt, why: reasons }
    }
  } else if (repair && canChange) {
    reasons = [...reasons, reason('REPAIR_EXHAUSTED', request.task.name, `${repair.max} repairs`)]
  }
  const result = await failSafe(request, { ...failure, reasons }, findOwner)
  return { type: 'fail_safe', result }
}

/** A new attempt may start only from a clean ground. */
async function undoAll(request: GovernedRequest, findOwner: FindOwner): Promise<boolean> {
  const undo = await undoEffects(request, findOwner)
  return undo.every(({ status }) => status === 'done' || status === 'skipped')
}

function toText(candidate: unknown): string | undefined {
  try {
    return canonicalJson(candidate === undefined ? null : candidate)
  } catch {
    // Told as a reason of the run.
    return undefined
  }
}
