import { canonicalJson, deepFreeze, type JsonValue } from '@skein/base'
import type { Verifier } from '../contract/define-task-class.ts'
import { hashText } from '../contract/envelope.ts'
import type {
  Check,
  Evidence,
  MissingNeed,
  Need,
  VerificationReport,
} from '../contract/evidence.ts'
import { messageOf, reason, type Reason } from '../contract/reason.ts'
import { validateEvidence, validateReport } from '../schema/validate.ts'
import { timestampOf } from '../journal/journal.ts'
import type { GovernedRequest } from './request.ts'
import { TimeoutError, withTimeout } from './options.ts'
import { judge, toAction } from './decide.ts'
import { isInDoubt, standingCalls } from '../journal/state.ts'
import { approvalEvidence, evidenceOf } from './settle.ts'

/** A report and, where it does not open the gate, why not. */
export interface Verdict {
  readonly report: VerificationReport
  readonly reasons: readonly Reason[]
}

/** Runs all verifiers side by side on one snapshot of the evidence; each leaves a report (UAICP §5.2). */
export async function runVerifiers(
  request: GovernedRequest,
  evidence: readonly Evidence[],
  candidate: JsonValue,
): Promise<Verdict[]> {
  const { verifiers } = request.task
  const found = await Promise.all(
    verifiers.map((verifier) => look(request, verifier, evidence, candidate)),
  )
  // In the order of the task class, whoever was first: the log must not depend on that.
  for (const [index, verdict] of found.entries()) {
    await record(request, verifiers[index] as Verifier, verdict)
  }
  return found
}

/** One verifier's verdict. One that gave no report gets a failing one. */
async function look(
  request: GovernedRequest,
  verifier: Verifier,
  evidence: readonly Evidence[],
  candidate: JsonValue,
): Promise<Verdict> {
  const { state, core, task } = request
  const toReport = (checks: readonly Check[]): VerificationReport => ({
    report_id: `${state.request_id}/${state.attempt}/${verifier.id}`,
    request_id: state.request_id,
    verifier_id: verifier.id,
    evidence_ids: evidence.map(({ evidence_id }) => evidence_id),
    status: statusOf(checks),
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
    const { request_id } = state
    const answer: unknown = await withTimeout(
      async (signal) => verifier.check(evidence, { request_id, candidate, signal }),
      verifier.timeoutMs,
      core.timer,
    )
    // Checks or a report; prose, a boolean or nothing is no answer (UAICP §2).
    const given = Array.isArray(answer) ? toReport(answer) : answer
    const report = deepFreeze(JSON.parse(canonicalJson(given)) as VerificationReport)
    const [issue] = validateReport(report)
    if (issue) return failed('VERIFIER_ERROR', `${issue.path} ${issue.message}`)
    const problem = findProblem(report, toReport(report.checks))
    if (problem) return failed('VERIFIER_INCONSISTENT', problem)
    return { report, reasons: reasonsOf(verifier, report) }
  } catch (error) {
    const code = error instanceof TimeoutError ? 'VERIFIER_TIMEOUT' : 'VERIFIER_ERROR'
    return failed(code, messageOf(error))
  }
}

type VerifierCode = 'VERIFIER_ERROR' | 'VERIFIER_TIMEOUT' | 'VERIFIER_INCONSISTENT'

/** Why a report says nothing about this run, beside what its checks would make of it. */
function findProblem(report: VerificationReport, own: VerificationReport): string | undefined {
  if (report.checks.length === 0) return 'it checked nothing'
  if (report.request_id !== own.request_id) return 'it speaks of another request'
  if (report.verifier_id !== own.verifier_id) return 'it names another verifier'
  const seen = new Set(report.evidence_ids)
  if (own.evidence_ids.some((id) => !seen.has(id))) return 'it left out evidence'
  return report.status === own.status
    ? undefined
    : `it says ${report.status}, its checks ${own.status}`
}

function statusOf(checks: readonly Check[]): VerificationReport['status'] {
  if (checks.some((check) => check?.result === 'fail')) return 'fail'
  return checks.every((check) => check?.result === 'pass') ? 'pass' : 'partial'
}

/** Only a full pass opens the gate. */
function reasonsOf(verifier: Verifier, report: VerificationReport): Reason[] {
  const [issue] = validateReport(report, 'gate')
  if (!issue) return []
  const failing = report.checks.filter(({ result }) => result !== 'pass')
  const detail = failing.map(({ check_id, result }) => `${check_id}: ${result}`).join(', ')
  return [reason('VERIFICATION_FAILED', verifier.id, detail || `${issue.path} ${issue.message}`)]
}

async function record(
  request: GovernedRequest,
  verifier: Verifier,
  { report, reasons }: Verdict,
): Promise<void> {
  const text = canonicalJson(report)
  const hash = hashText(text)
  await request.put(hash, text)
  const data = {
    verifier: verifier.id,
    report: report.report_id,
    report_hash: hash,
    evidence: report.evidence_ids,
    mechanical: verifier.mechanical !== false,
    reasons: reasons.length > 0 ? reasons : undefined,
  }
  const outcome = reasons.length === 0 ? 'success' : 'failure'
  await request.submit({ type: 'verified', data }, { outcome })
}

/** Evidence that stands in the present attempt, frozen; and what could not be read back. */
export async function collectEvidence(
  request: GovernedRequest,
): Promise<{ readonly evidence: readonly Evidence[]; readonly reasons: readonly Reason[] }> {
  const evidence: Evidence[] = []
  const reasons: Reason[] = []
  for (const call of standingCalls(request.state)) {
    try {
      evidence.push(await evidenceOf(request, call))
    } catch (error) {
      reasons.push(reason('EVIDENCE_INVALID', call.tool, messageOf(error)))
    }
  }
  return { evidence: Object.freeze([...evidence, ...approvalEvidence(request)]), reasons }
}

/** UAICP §5.1: which needs are not met, and why. */
export function findMissing(
  { task, core }: GovernedRequest,
  evidence: readonly Evidence[],
): { readonly missing: readonly MissingNeed[]; readonly reasons: readonly Reason[] } {
  const missing: MissingNeed[] = []
  const reasons: Reason[] = []
  for (const need of task.needs) {
    const { type, source, subtype, min = 1, maxAgeMs } = need
    const meant = evidence.filter((one) => isMeant(need, one))
    const valid = meant.filter(
      (one) => validateEvidence(one, 'gate').length === 0 && holds(need, one),
    )
    const fresh = valid.filter((one) => isFresh(one, core.clock.now(), maxAgeMs))
    if (fresh.length >= min) continue
    const subject = [type, source, subtype].filter((part) => part !== undefined).join(':')
    reasons.push(reason('EVIDENCE_MISSING', subject, `${fresh.length} of ${min}`))
    if (valid.length < meant.length) reasons.push(reason('EVIDENCE_INVALID', subject))
    if (fresh.length < valid.length) reasons.push(reason('EVIDENCE_STALE', subject))
    missing.push({
      type,
      ...(source !== undefined && { source }),
      ...(subtype !== undefined && { subtype }),
      min,
      found: fresh.length,
    })
  }
  return { missing, reasons }
}

function isMeant({ type, source, subtype }: Need, evidence: Evidence): boolean {
  if (evidence.evidence_type !== type) return false
  if (source !== undefined && evidence.source !== source) return false
  return subtype === undefined || evidence['uaicp:subtype'] === subtype
}

/** A predicate that throws does not hold. */
function holds({ where }: Need, evidence: Evidence): boolean {
  try {
    return where === undefined || where(evidence) === true
  } catch {
    return false
  }
}

/** Neither too old nor from the future. */
function isFresh({ collected_at }: Evidence, now: number, maxAgeMs: number | undefined): boolean {
  if (maxAgeMs === undefined) return true
  const age = now - Date.parse(collected_at)
  return age <= maxAgeMs && age >= -maxAgeMs
}

/** Everything besides evidence and verification that has to be true of a request that delivers. */
export async function findOpenReasons(request: GovernedRequest): Promise<Reason[]> {
  const { state, core, stopped, task } = request
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
  return [...reasons, ...(await findPolicyReasons(request))]
}

/** A policy that changed since a write was admitted is asked again before the write becomes final. */
async function findPolicyReasons(request: GovernedRequest): Promise<Reason[]> {
  const writes = standingCalls(request.state).filter(
    ({ policy_hash }) => policy_hash !== undefined && policy_hash !== request.policyHash,
  )
  const reasons: Reason[] = []
  for (const call of writes) {
    const args = await request.fetch(call.args_hash)
    const { decision } = await judge(request, toAction(request, { ...call, args }))
    if (decision.effect !== 'deny') continue
    reasons.push(...(decision.reasons ?? [reason('POLICY_BLOCKED', call.tool)]))
  }
  return reasons
}
