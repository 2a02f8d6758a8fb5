import { isPlainObject } from '@skein/base'
import { type Action, combineDecisions, type Decision } from '../contract/policy.ts'
import { reason, REASON_CODES, type ReasonCode, thrownText } from '../contract/reason.ts'
import type { ShadowData } from '../journal/events.ts'
import { withTimeout } from './options.ts'
import type { GovernedRequest } from './request.ts'

/** The part of an action that differs from call to call. */
type Act = Pick<Action, 'tool' | 'risk' | 'args' | 'args_hash' | 'native' | 'rollback'> & {
  readonly call: string
}

/** Builds the description of a call that policies and people are shown. */
export function toAction({ state, task, policyHash }: GovernedRequest, act: Act): Action {
  const { call, tool, risk, args, args_hash, rollback, native } = act
  const round = state.calls.get(call)?.round ?? 1
  return Object.freeze({
    request_id: state.request_id,
    trace_id: state.trace_id,
    call_id: call,
    task: task.name,
    tool,
    risk,
    args,
    args_hash,
    identity: state.identity,
    depth: state.opened.depth,
    // Absent members are left out rather than set to undefined, because an action is plain data that
    // receivers may compare.
    ...(rollback && { rollback }),
    policy_hash: policyHash,
    ...(round > 1 && { round }),
    ...(native && { native }),
  })
}

/**
 * The combined decision of the policies, and the decisions of policies in shadow mode, which have no
 * effect.
 */
export interface Judgement {
  readonly decision: Decision
  readonly shadow: readonly ShadowData[]
}

/**
 * Asks all policies. A policy that throws, takes too long or returns something other than a decision
 * counts as a denial. The action is also denied when no policy returns a decision (UAICP §5.3).
 */
export async function judge(
  { core: { limits, timer }, policies }: GovernedRequest,
  action: Action,
): Promise<Judgement> {
  const questions = policies.map(async (policy): Promise<Decision | undefined> => {
    let problem: string
    try {
      const decide = async (): Promise<Decision | undefined> => policy.decide(action)
      const decision = await withTimeout(decide, limits.policyTimeoutMs, timer)
      if (decision === undefined) return undefined
      if (isDecision(decision)) {
        const reasons = decision.reasons?.map(({ code, subject, detail }) =>
          reason(code, subject, detail),
        )
        return reasons ? { ...decision, reasons } : decision
      }
      problem = 'its answer is not a decision'
    } catch (error) {
      problem = thrownText(error)
    }
    return { effect: 'deny', reasons: [reason('POLICY_ERROR', policy.id, problem)] }
  })
  const shadow: ShadowData[] = []
  const counting: Decision[] = []
  const answers = await Promise.all(questions)
  for (const [index, { mode, id }] of policies.entries()) {
    const answer = answers[index]
    if (mode === 'shadow') shadow.push({ policy: id, effect: answer?.effect ?? 'deny' })
    else if (answer) counting.push(answer)
  }
  const decision = combineDecisions(counting) ?? {
    effect: 'deny' as const,
    reasons: [reason('POLICY_BLOCKED', action.tool, 'no policy allows this action')],
  }
  return { decision, shadow }
}

function isDecision(value: unknown): value is Decision {
  if (!isPlainObject(value)) return false
  const { effect, quorum, reasons } = value
  if (effect !== 'allow' && effect !== 'deny' && effect !== 'review') return false
  if (quorum !== undefined && !(Number.isInteger(quorum) && (quorum as number) >= 1)) return false
  if (reasons === undefined) return true
  const isReason = (one: unknown): boolean =>
    isPlainObject(one) && REASON_CODES.includes(one['code'] as ReasonCode)
  return Array.isArray(reasons) && reasons.every(isReason)
}
