import { canonicalJson, deepFreeze, type JsonValue } from '@skein/base'
import type { Verifier } from '../define-verifier.ts'
import { hashText } from '../digest.ts'
import type { Evidence } from '../evidence.ts'
import { messageOf, reason, type Reason } from '../reason.ts'
import type { Check, VerificationReport } from '../report.ts'
import { validateReport } from '../validate.ts'
import { timestampOf } from './journal-line.ts'
import type { GovernedRequest } from './request.ts'
import { TimeoutError, withTimeout } from './timer.ts'

/** A report and, where it does not open the gate, why not. */
export interface Verdict {
  readonly report: VerificationReport
  readonly reasons: readonly Reason[]
}

/** Runs all verifiers side by side on one snapshot of the evidence; each leaves a report (§5.2). */
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
    // Checks or a report; prose, a boolean or nothing is no answer (§2).
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
