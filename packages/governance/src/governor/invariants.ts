import { judge, toAction } from './decide.ts'
import type { Evidence, MissingNeed, Need } from '../evidence.ts'
import { isInDoubt, standingCalls } from './governor-state.ts'
import { messageOf, reason, type Reason } from '../reason.ts'
import type { GovernedRequest } from './request.ts'
import { approvalEvidence, evidenceOf } from './settle.ts'
import { validateEvidence } from '../validate.ts'

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

/** §5.1: which needs are not met, and why. */
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
