import { isPlainObject } from '@skein/base'
import { type Hash, hashJson } from '../contract/envelope.ts'
import type { ShadowData } from '../journal/events.ts'
import { type Action, combineDecisions, type Decision, type Policy } from '../contract/policy.ts'
import { messageOf, reason, REASON_CODES } from '../contract/reason.ts'
import { type GovernorCore, withTimeout } from './options.ts'
import type { GovernedRequest } from './request.ts'

export interface Judgement {
  readonly decision: Decision
  /** What policies in shadow mode would have said. */
  readonly shadow: readonly ShadowData[]
}

/** The part of an action that is not the run's. */
type Act = Pick<Action, 'tool' | 'risk' | 'args' | 'args_hash' | 'native'> & {
  readonly call: string
  readonly rollback?: Action['rollback'] | undefined
}

/** A call as policies and people see it. */
export function toAction({ state, task, policyHash }: GovernedRequest, act: Act): Action {
  const { call, tool, risk, args, args_hash, rollback, native } = act
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
    ...(rollback && { rollback }),
    policy_hash: policyHash,
    ...(native && { native }),
  })
}

/** Hash of the policies that count; a change of any makes earlier approvals worthless. */
export function hashPolicies(policies: readonly Policy[]): Hash {
  const counting = policies.filter(({ mode }) => mode !== 'shadow')
  return hashJson(counting.map(({ id, hash }) => ({ id, hash })))
}

/** Asks all policies. Errors, timeouts and odd answers deny; so does silence (UAICP §5.3). */
export async function judge(
  { core, policies }: GovernedRequest,
  action: Action,
): Promise<Judgement> {
  const heard = await Promise.all(
    policies.map(async (policy) => ({ policy, said: await ask(policy, action, core) })),
  )
  const shadow: ShadowData[] = []
  const counting: Decision[] = []
  for (const { policy, said } of heard) {
    if (policy.mode !== 'shadow') counting.push(...(said ? [said] : []))
    else shadow.push({ policy: policy.id, effect: said?.effect ?? 'deny' })
  }
  const decision = combineDecisions(counting) ?? {
    effect: 'deny' as const,
    reasons: [reason('POLICY_BLOCKED', action.tool, 'no policy allows this action')],
  }
  return { decision, shadow }
}

async function ask(
  policy: Policy,
  action: Action,
  { limits, timer }: GovernorCore,
): Promise<Decision | undefined> {
  try {
    const decide = async (): Promise<Decision | undefined> => policy.decide(action)
    const said = await withTimeout(decide, limits.policyTimeoutMs, timer)
    if (said === undefined) return undefined
    if (!isDecision(said)) return failed(policy, 'its answer is not a decision')
    const reasons = said.reasons?.map(({ code, subject, detail }) => reason(code, subject, detail))
    return reasons ? { ...said, reasons } : said
  } catch (error) {
    return failed(policy, messageOf(error))
  }
}

function isDecision(value: unknown): value is Decision {
  if (!isPlainObject(value)) return false
  const { effect, quorum, reasons } = value
  if (effect !== 'allow' && effect !== 'deny' && effect !== 'review') return false
  if (quorum !== undefined && !(Number.isInteger(quorum) && (quorum as number) >= 1)) return false
  return reasons === undefined || (Array.isArray(reasons) && reasons.every(isReason))
}

function isReason(value: unknown): boolean {
  return isPlainObject(value) && REASON_CODES.some((code) => code === value['code'])
}

/** Fail closed: a policy that cannot answer has denied. */
function failed(policy: Policy, detail: string): Decision {
  return { effect: 'deny', reasons: [reason('POLICY_ERROR', policy.id, detail)] }
}
