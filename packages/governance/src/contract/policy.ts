import type { JsonValue } from '@skein/base'
import { type Hash, hashJson, type Identity, type Risk, type RollbackAction } from './envelope.ts'
import type { Reason } from './reason.ts'

/** One call as policy, people and the tool see it: frozen, its arguments a snapshot. */
export interface Action {
  readonly request_id: string
  readonly trace_id: string
  readonly call_id: string
  readonly task: string
  readonly tool: string
  readonly risk: Risk
  readonly args: JsonValue
  readonly args_hash: Hash
  readonly identity: Identity
  /** 0 for an outermost run, 1 for its children, … */
  readonly depth: number
  readonly rollback?: RollbackAction
  /** Hash of the policies that judge the action; part of what an approval is bound to. */
  readonly policy_hash: Hash
  /** True for a tool that runs at the model's vendor, where nothing here can watch it. */
  readonly native?: boolean
}

/** What a policy says about an action. */
export interface Decision {
  readonly effect: 'allow' | 'deny' | 'review'
  readonly reasons?: readonly Reason[]
  /** How many different people must approve; 1 by default, the highest of all policies counts. */
  readonly quorum?: number
  /** The person for whom the agent acts (`user_id`) may not approve. */
  readonly fourEyes?: boolean
  /** A signed grant that stands in for a token. `Approvals.checkGrant` has to accept it. */
  readonly grant?: string
}

/** Judges actions. Throwing, or an answer of another shape, blocks the action. */
export interface Policy {
  readonly id: string
  /** Changes when the policy changes. */
  readonly hash: Hash
  /** `shadow`: decides and is logged, but counts for nothing. */
  readonly mode?: 'enforce' | 'shadow'
  /** Undefined: this policy has no opinion. */
  decide(action: Action): Decision | undefined | Promise<Decision | undefined>
}

/** One rule: a decision about the actions for which `when` is true. */
export interface Rule extends Decision {
  readonly when: (action: Action) => boolean
}

/** Options of `rules`. */
export interface RulesOptions {
  readonly id?: string
  /** Change this when a rule changes through something that its source text does not show. */
  readonly version?: string
  readonly mode?: 'enforce' | 'shadow'
}

/**
 * A policy from typed rules. All rules that match count: deny beats review beats allow. Where none
 * matches the policy has no opinion, and a write that no policy allows is denied.
 *
 *     rules([
 *       { when: (action) => action.risk === 'write_low_risk', effect: 'allow' },
 *       { when: (action) => action.tool === 'refund', effect: 'review', quorum: 2 },
 *     ])
 */
export function rules(list: readonly Rule[], options: RulesOptions = {}): Policy {
  const { id = 'rules', version = '', mode = 'enforce' } = options
  const texts = list.map(({ when, ...decision }) => ({ ...decision, when: String(when) }))
  return Object.freeze({
    id,
    mode,
    hash: hashJson({ id, version, rules: texts }),
    decide: (action: Action) => combineDecisions(list.filter(({ when }) => when(action) === true)),
  })
}

/** Allows low-risk writes and sends high-risk ones to a person. A sensible start; never the default. */
export const standardPolicy: Policy = Object.freeze({
  id: 'standard',
  mode: 'enforce',
  // Not of the source text, which bundlers change: an approval that was asked for stays valid after an upgrade.
  hash: hashJson({ id: 'standard', version: '1' }),
  decide: ({ risk, native }: Action): Decision | undefined => {
    if (risk === 'write_low_risk') return { effect: 'allow' }
    return risk === 'write_high_risk' && !native ? { effect: 'review' } : undefined
  },
})

const STRENGTH = { allow: 0, review: 1, deny: 2 } as const

/** The strongest of several decisions, with the reasons of those that share its effect. */
export function combineDecisions(decisions: readonly Decision[]): Decision | undefined {
  if (decisions.length === 0) return undefined
  const effect = decisions.reduce<Decision['effect']>(
    (strongest, next) => (STRENGTH[next.effect] > STRENGTH[strongest] ? next.effect : strongest),
    'allow',
  )
  const reasons = decisions
    .filter((one) => one.effect === effect)
    .flatMap((one) => one.reasons ?? [])
  const grant = decisions.find((one) => one.grant !== undefined)?.grant
  return {
    effect,
    reasons: reasons.length > 0 ? reasons : undefined,
    quorum: Math.max(1, ...decisions.map((one) => one.quorum ?? 1)),
    fourEyes: decisions.some((one) => one.fourEyes === true),
    grant,
  }
}

/** Hash of the policies that count. When one of them changes, earlier approvals are no longer valid. */
export function hashPolicies(policies: readonly Policy[]): Hash {
  const counting = policies.filter(({ mode }) => mode !== 'shadow')
  return hashJson(counting.map(({ id, hash }) => ({ id, hash })))
}
