import type { Evidence, MissingNeed, Need } from '../contract/evidence.ts'
import { reason, type Reason } from '../contract/reason.ts'
import { validateEvidence } from '../schema/validate.ts'
import type { GovernedRequest } from './request.ts'
import { collectEvidence } from './evidence.ts'

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
    const candidates = evidence.filter(
      (one) =>
        one.evidence_type === type &&
        (source === undefined || one.source === source) &&
        (subtype === undefined || one['uaicp:subtype'] === subtype),
    )
    const valid = candidates.filter(
      (one) => validateEvidence(one, 'gate').length === 0 && holds(need, one),
    )
    // Evidence counts only if its time is neither too old nor too far in the future.
    const fresh = valid.filter(
      ({ collected_at }) => Math.abs(core.clock.now() - Date.parse(collected_at)) <= maxAgeMs,
    )
    if (fresh.length >= min) continue
    const subject = [type, source, subtype].filter((part) => part !== undefined).join(':')
    reasons.push(reason('EVIDENCE_MISSING', subject, `${fresh.length} of ${min}`))
    if (valid.length < candidates.length) reasons.push(reason('EVIDENCE_INVALID', subject))
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
