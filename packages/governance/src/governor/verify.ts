import { canonicalJson, type JsonValue } from '@skein/base'
import type { Verifier, VerifierAnswer } from '../define-verifier.ts'
import type { Evidence } from '../evidence.ts'
import { timestampOf } from './journal-line.ts'
import { messageOf, reason, type Reason } from '../reason.ts'
import type { Check, VerificationReport } from '../report.ts'
import type { GovernedRequest } from './request.ts'
import { TimeoutError, withTimeout } from './timer.ts'
import { validateReport } from '../validate.ts'
import { hashText } from '../digest.ts'
import { REPORT_SCHEMA } from '../schema/report-schema.ts'
import { findSchemaIssues } from '../validate-schema.ts'

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
  const verdicts: Verdict[] = []
  // In the order of the task class, whoever was first: the log must not depend on that.
  for (const [index, answer] of found.entries()) {
    const verifier = verifiers[index] as Verifier
    verdicts.push(await report(request, verifier, evidence, answer))
  }
  return verdicts
}

type Answer =
  | { readonly type: 'checks'; readonly checks: readonly Check[] }
  | { readonly type: 'report'; readonly report: VerificationReport }
  | { readonly type: 'failed'; readonly reason: Reason }

async function look(
  request: GovernedRequest,
  verifier: Verifier,
  evidence: readonly Evidence[],
  candidate: JsonValue,
): Promise<Answer> {
  const { state, core, task } = request
  if (verifier.mechanical === false && !task.acceptModelGraded) {
    return failed('VERIFIER_ERROR', verifier, 'it is not mechanical and the task asks for that')
  }
  try {
    const answer: unknown = await withTimeout(
      async (signal) =>
        verifier.check(evidence, { request_id: state.request_id, candidate, signal }),
      verifier.timeoutMs,
      core.timer,
    )
    return classify(request, verifier, evidence, answer as VerifierAnswer)
  } catch (error) {
    return error instanceof TimeoutError
      ? failed('VERIFIER_TIMEOUT', verifier, error.message)
      : failed('VERIFIER_ERROR', verifier, messageOf(error))
  }
}

/** Prose, a boolean or nothing is no answer (§2). */
function classify(
  { state }: GovernedRequest,
  verifier: Verifier,
  evidence: readonly Evidence[],
  answer: VerifierAnswer,
): Answer {
  if (Array.isArray(answer)) {
    const schema = REPORT_SCHEMA.properties?.['checks']
    const [issue] = schema ? findSchemaIssues(schema, answer, '/checks') : []
    if (issue) return failed('VERIFIER_ERROR', verifier, `${issue.path} ${issue.message}`)
    if (answer.length === 0) return failed('VERIFIER_INCONSISTENT', verifier, 'it checked nothing')
    return { type: 'checks', checks: answer }
  }
  const [issue] = validateReport(answer)
  if (issue) return failed('VERIFIER_ERROR', verifier, `no checks and no report: ${issue.path}`)
  const report = answer as VerificationReport
  const problem = findReportProblem(state.request_id, verifier, evidence, report)
  if (problem) return failed('VERIFIER_INCONSISTENT', verifier, problem)
  return { type: 'report', report }
}

/** Why a report from elsewhere says nothing about this run. */
function findReportProblem(
  requestId: string,
  { id }: Verifier,
  evidence: readonly Evidence[],
  report: VerificationReport,
): string | undefined {
  if (report.request_id !== requestId) return 'it speaks of another request'
  if (report.verifier_id !== id) return 'it names another verifier'
  const seen = new Set(report.evidence_ids)
  if (evidence.some(({ evidence_id }) => !seen.has(evidence_id))) return 'it left out evidence'
  const status = statusOf(report.checks)
  return report.status === status ? undefined : `it says ${report.status}, its checks ${status}`
}

function statusOf(checks: readonly Check[]): VerificationReport['status'] {
  if (checks.some(({ result }) => result === 'fail') || checks.length === 0) return 'fail'
  return checks.every(({ result }) => result === 'pass') ? 'pass' : 'partial'
}

/** Writes the report of one verifier; one that gave none gets a failing one. */
async function report(
  request: GovernedRequest,
  verifier: Verifier,
  evidence: readonly Evidence[],
  answer: Answer,
): Promise<Verdict> {
  const { state, core } = request
  const made = toReport(request, verifier, evidence, answer)
  const text = canonicalJson(made)
  const reasons = reasonsOf(verifier, made, answer)
  await request.put(hashText(text), text)
  const data = {
    verifier: verifier.id,
    report: made.report_id,
    report_hash: hashText(text),
    evidence: evidence.map(({ evidence_id }) => evidence_id),
    mechanical: verifier.mechanical !== false,
    ...(reasons.length > 0 && { reasons }),
  }
  const outcome = reasons.length === 0 ? 'success' : 'failure'
  await request.submit(
    { type: 'verified', data },
    { outcome, actor: { type: 'system', id: core.id } },
  )
  return { report: Object.freeze({ ...made, request_id: state.request_id }), reasons }
}

function toReport(
  { state, core }: GovernedRequest,
  verifier: Verifier,
  evidence: readonly Evidence[],
  answer: Answer,
): VerificationReport {
  if (answer.type === 'report') return answer.report
  const checks =
    answer.type === 'checks'
      ? answer.checks
      : [
          {
            check_id: answer.reason.code,
            result: 'fail' as const,
            details: answer.reason.detail ?? '',
          },
        ]
  return {
    report_id: `${state.request_id}/${state.attempt}/${verifier.id}`,
    request_id: state.request_id,
    verifier_id: verifier.id,
    evidence_ids: evidence.map(({ evidence_id }) => evidence_id),
    status: statusOf(checks),
    checks,
    generated_at: timestampOf(core.clock.now()),
  }
}

function reasonsOf(verifier: Verifier, made: VerificationReport, answer: Answer): Reason[] {
  if (answer.type === 'failed') return [answer.reason]
  const [issue] = validateReport(made, 'gate')
  if (!issue) return []
  const failing = made.checks.filter(({ result }) => result !== 'pass')
  const detail = failing.map(({ check_id, result }) => `${check_id}: ${result}`).join(', ')
  return [reason('VERIFICATION_FAILED', verifier.id, detail || `${issue.path} ${issue.message}`)]
}

function failed(
  code: 'VERIFIER_ERROR' | 'VERIFIER_TIMEOUT' | 'VERIFIER_INCONSISTENT',
  verifier: Verifier,
  detail: string,
): Answer {
  return { type: 'failed', reason: reason(code, verifier.id, detail) }
}
