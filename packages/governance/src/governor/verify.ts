import { canonicalJson, type JsonValue } from '@skein/base'
import { freezeJson } from '../contract/envelope.ts'
import type { Verifier } from '../contract/governed.ts'
import type { Check, Evidence, VerificationReport } from '../contract/evidence.ts'
import { reason, type Reason, thrownText } from '../contract/reason.ts'
import { timestampOf } from '../journal/line-writer.ts'
import { validateReport } from '../schema/validate.ts'
import { TimeoutError, withTimeout } from './options.ts'
import type { GovernedRequest } from './request.ts'

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
  const failure = (code: VerifierCode, text: string): Verdict => {
    const why = reason(code, verifier.id, text)
    const details = why.detail ?? ''
    return { report: toReport([{ check_id: code, result: 'fail', details }]), reasons: [why] }
  }
  if (verifier.mechanical === false && !task.acceptModelGraded) {
    return failure('VERIFIER_ERROR', 'it is not mechanical and the task asks for that')
  }
  try {
    const answer: unknown = await withTimeout(
      async (signal) => verifier.check(evidence, { request_id, candidate, signal }),
      verifier.timeoutMs,
      core.timer,
    )
    // Valid answers are a list of checks or a report. Prose, a boolean or nothing is rejected (UAICP §2).
    const draft = Array.isArray(answer) ? toReport(answer) : answer
    const report = freezeJson(JSON.parse(canonicalJson(draft)) as VerificationReport)
    const [issue] = validateReport(report)
    if (issue) return failure('VERIFIER_ERROR', `${issue.path} ${issue.message}`)
    const problem = findInconsistency(report, toReport(report.checks))
    if (problem) return failure('VERIFIER_INCONSISTENT', problem)
    const [gap] = validateReport(report, 'gate')
    if (!gap) return { report, reasons: [] }
    const failing = report.checks.filter(({ result }) => result !== 'pass')
    const detail = failing.map(({ check_id, result }) => `${check_id}: ${result}`).join(', ')
    const why = detail || `${gap.path} ${gap.message}`
    return { report, reasons: [reason('VERIFICATION_FAILED', verifier.id, why)] }
  } catch (error) {
    const code = error instanceof TimeoutError ? 'VERIFIER_TIMEOUT' : 'VERIFIER_ERROR'
    return failure(code, thrownText(error))
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
  const ids = new Set(report.evidence_ids)
  if (own.evidence_ids.some((id) => !ids.has(id))) return 'it left out evidence'
  return report.status === own.status
    ? undefined
    : `it says ${report.status}, its checks ${own.status}`
}
