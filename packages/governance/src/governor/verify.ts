import { canonicalJson, type JsonValue } from '@skein/base'
import { freezeJson } from '../contract/envelope.ts'
import type { Verifier } from '../contract/governed.ts'
import type {
  Check,
  Evidence,
  MissingNeed,
  Need,
  VerificationReport,
} from '../contract/evidence.ts'
import { thrownText, reason, type Reason } from '../contract/reason.ts'
import { timestampOf } from '../journal/journal.ts'
import { isInDoubt, standingCalls } from '../journal/reduce.ts'
import { validateEvidence, validateReport } from '../schema/validate.ts'
import { judge, toAction } from './decide.ts'
import { TimeoutError, withTimeout } from './options.ts'
import type { GovernedRequest } from './request.ts'
import { approvalEvidence, evidenceOf } from './execute.ts'

/**
 * Collects the evidence of the current attempt, frozen, and the reasons why some of it could not be read.
 */
export async function collectEvidence(
  request: GovernedRequest,
): Promise<{ readonly evidence: readonly Evidence[]; readonly reasons: readonly Reason[] }> {
  const evidence: Evidence[] = []
  const reasons: Reason[] = []
  for (const call of standingCalls(request.state)) {
    try {
      evidence.push(await evidenceOf(request, call))
    } catch (error) {
      reasons.push(reason('EVIDENCE_INVALID', call.tool, thrownText(error)))
    }
  }
  return { evidence: Object.freeze([...evidence, ...approvalEvidence(request)]), reasons }
}

/** A verifier's report and, if the report does not allow delivery, the reasons why. */
export interface Verdict {
  readonly report: VerificationReport
  readonly reasons: readonly Reason[]
}

/**
 * Runs all verifiers in parallel on one snapshot of the evidence and records the report of each (UAICP
 * §5.2).
 */
export async function runVerifiers(
  request: GovernedRequest,
  evidence: readonly Evidence[],
  candidate: JsonValue,
): Promise<Verdict[]> {
  const { verifiers } = request.task
  const verdicts = await Promise.all(
    verifiers.map((verifier) => runVerifier(request, verifier, evidence, candidate)),
  )
  // Reports are written in the order of the task class, because the log must not depend on which verifier
  // finished first.
  for (const [index, { id, mechanical }] of verifiers.entries()) {
    const { report, reasons } = verdicts[index] as Verdict
    const data = {
      verifier: id,
      report: report.report_id,
      report_hash: await request.keep(canonicalJson(report)),
      evidence: report.evidence_ids,
      mechanical: mechanical !== false,
      reasons: reasons.length > 0 ? reasons : undefined,
    }
    const outcome = reasons.length === 0 ? 'success' : 'failure'
    await request.submit({ type: 'verified', data }, { outcome })
  }
  return verdicts
}

/**
 * Runs one verifier and returns its verdict. If it returns no usable report, a failing report is made for
 * it.
 */
async function runVerifier(
  request: GovernedRequest,
  verifier: Verifier,
  evidence: readonly Evidence[],
  candidate: JsonValue,
): Promise<Verdict> {
  const { state, core, task } = request
  const { request_id } = state
  const toReport = (checks: readonly Check[]): VerificationReport => ({
    report_id: `${request_id}/${state.attempt}/${verifier.id}`,
    request_id,
    verifier_id: verifier.id,
    evidence_ids: evidence.map(({ evidence_id }) => evidence_id),
    status: checks.some((check) => check?.result === 'fail')
      ? 'fail'
      : checks.every((check) => check?.result === 'pass')
        ? 'pass'
        : 'partial',
    checks,
    generated_at: timestampOf(core.clock.now()),
  })
  const failed = (code: VerifierCode, text: string): Verdict => {
    const why = reason(code, verifier.id, text)
    const details = why.detail ?? ''
    return { report: toReport([{ check_id: code, result: 'fail', details }]), reasons: [why] }
  }
  if (verifier.mechanical === false && !task.acceptModelGraded) {
    return failed('VERIFIER_ERROR', 'it is not mechanical and the task asks for that')
  }
  try {
    const answer: unknown = await withTimeout(
      async (signal) => verifier.check(evidence, { request_id, candidate, signal }),
      verifier.timeoutMs,
      core.timer,
    )
    // Valid answers are a list of checks or a report. Prose, a boolean or nothing is rejected (UAICP §2).
    const given = Array.isArray(answer) ? toReport(answer) : answer
    const report = freezeJson(JSON.parse(canonicalJson(given)) as VerificationReport)
    const [issue] = validateReport(report)
    if (issue) return failed('VERIFIER_ERROR', `${issue.path} ${issue.message}`)
    const problem = findInconsistency(report, toReport(report.checks))
    if (problem) return failed('VERIFIER_INCONSISTENT', problem)
    const [gap] = validateReport(report, 'gate')
    if (!gap) return { report, reasons: [] }
    const failing = report.checks.filter(({ result }) => result !== 'pass')
    const detail = failing.map(({ check_id, result }) => `${check_id}: ${result}`).join(', ')
    const why = detail || `${gap.path} ${gap.message}`
    return { report, reasons: [reason('VERIFICATION_FAILED', verifier.id, why)] }
  } catch (error) {
    const code = error instanceof TimeoutError ? 'VERIFIER_TIMEOUT' : 'VERIFIER_ERROR'
    return failed(code, thrownText(error))
  }
}

type VerifierCode = 'VERIFIER_ERROR' | 'VERIFIER_TIMEOUT' | 'VERIFIER_INCONSISTENT'

/**
 * Returns why a report is not accepted: it checked nothing, leaves out evidence, contradicts itself, or
 * names another request or verifier. `own` is the report that the governor builds from the same checks.
 */
function findInconsistency(
  report: VerificationReport,
  own: VerificationReport,
): string | undefined {
  if (report.checks.length === 0) return 'it checked nothing'
  if (report.request_id !== own.request_id) return 'it speaks of another request'
  if (report.verifier_id !== own.verifier_id) return 'it names another verifier'
  const seen = new Set(report.evidence_ids)
  if (own.evidence_ids.some((id) => !seen.has(id))) return 'it left out evidence'
  return report.status === own.status
    ? undefined
    : `it says ${report.status}, its checks ${own.status}`
}

/** Why a run fails, and which required evidence is missing. */
export interface Failure {
  readonly reasons: readonly Reason[]
  readonly missing: readonly MissingNeed[]
}

/** Adds the required evidence that is missing to the reasons why a run ends without a candidate (UAICP §7). */
export async function toFailure(
  request: GovernedRequest,
  reasons: readonly Reason[],
): Promise<Failure> {
  const { evidence } = await collectEvidence(request)
  const { missing, reasons: needed } = findMissing(request, evidence)
  return { reasons: [...reasons, ...needed], missing }
}

/** Returns which evidence that the task requires is missing, and why (UAICP §5.1). */
export function findMissing(
  { task, core }: GovernedRequest,
  evidence: readonly Evidence[],
): Failure {
  const missing: MissingNeed[] = []
  const reasons: Reason[] = []
  for (const need of task.needs) {
    const { type, source, subtype, min = 1, maxAgeMs = Infinity } = need
    const meant = evidence.filter(
      (one) =>
        one.evidence_type === type &&
        (source === undefined || one.source === source) &&
        (subtype === undefined || one['uaicp:subtype'] === subtype),
    )
    const valid = meant.filter(
      (one) => validateEvidence(one, 'gate').length === 0 && holds(need, one),
    )
    // Evidence counts only if its time is neither too old nor too far in the future.
    const fresh = valid.filter(
      ({ collected_at }) => Math.abs(core.clock.now() - Date.parse(collected_at)) <= maxAgeMs,
    )
    if (fresh.length >= min) continue
    const subject = [type, source, subtype].filter((part) => part !== undefined).join(':')
    reasons.push(reason('EVIDENCE_MISSING', subject, `${fresh.length} of ${min}`))
    if (valid.length < meant.length) reasons.push(reason('EVIDENCE_INVALID', subject))
    if (fresh.length < valid.length) reasons.push(reason('EVIDENCE_STALE', subject))
    missing.push({ type, source, subtype, min, found: fresh.length })
  }
  return { missing, reasons }
}

/** Checks a need's `where` condition; a condition that throws is not met. */
function holds({ where }: Need, evidence: Evidence): boolean {
  try {
    return where === undefined || where(evidence) === true
  } catch {
    return false
  }
}

/** Returns the reasons that prevent delivery, other than missing evidence and failed verification. */
export async function findOpenReasons(request: GovernedRequest): Promise<Reason[]> {
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
