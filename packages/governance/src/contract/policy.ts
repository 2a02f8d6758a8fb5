import { canonicalJson, type JsonObject, type JsonValue, SkeinError } from '@skein/base'
import {
  freezeJson,
  type Hash,
  hashJson,
  type Identity,
  type Risk,
  type RollbackAction,
} from './envelope.ts'
import { findFreeNames } from './free-names.ts'
import type { Reason } from './reason.ts'

/**
 * The description of one call that policies and people are shown. The object is frozen, and `args` is a
 * copy of the call's arguments.
 */
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
  /** Hash of the policies that judge the action. It is part of the digest that an approval is bound to. */
  readonly policy_hash: Hash
  /**
   * Absent the first time. 2 or more when the call was in doubt and a person found that it had no effect: it
   * is then approved again, and an approval of an earlier round does not count.
   */
  readonly round?: number
  /** True for a tool that runs at the model's vendor and so cannot be observed here. */
  readonly native?: boolean
}

/** A policy's decision about an action. */
export interface Decision {
  readonly effect: 'allow' | 'deny' | 'review'
  readonly reasons?: readonly Reason[]
  /** How many different people must approve; 1 by default. The highest number of all policies applies. */
  readonly quorum?: number
  /** If true, the person for whom the agent acts (`user_id`) may not approve. */
  readonly fourEyes?: boolean
  /** A signed grant that replaces approval tokens. `Approvals.checkGrant` has to accept it. */
  readonly grant?: string
}

/**
 * Decides about actions. If `decide` throws or returns something that is not a decision, the action is
 * denied.
 */
export interface Policy {
  readonly id: string
  /** Must change whenever the policy changes. */
  readonly hash: Hash
  /** With `shadow` the decision is logged but has no effect. */
  readonly mode?: 'enforce' | 'shadow'
  /** Decides about one action. Undefined means that this policy has no opinion. */
  decide(action: Action): Decision | undefined | Promise<Decision | undefined>
}

/**
 * One rule: a decision about the actions for which `when` is true. `when` gets the `values` of the options
 * as its second parameter.
 */
export interface Rule<Values = JsonObject> extends Decision {
  readonly when: (action: Action, values: Values) => boolean
}

/** Options of `rules`. */
export interface RulesOptions<Values = JsonObject> {
  readonly id?: string
  /**
   * What the rules compare with: limits, lists, names. The values are part of the policy's hash, so an
   * approval that was given under other values is no longer valid.
   */
  readonly values?: Values
  /**
   * Required for rules that use variables or functions from outside, because the hash of the policy covers
   * only the source text of the rules. Change it whenever one of those changes.
   */
  readonly version?: string
  readonly mode?: 'enforce' | 'shadow'
}

/**
 * Creates a policy from typed rules. All rules that match are combined: deny overrides review, and review
 * overrides allow. If no rule matches, the policy has no opinion; a write that no policy allows is
 * denied.
 *
 *     rules(
 *       [
 *         { when: (action) => action.risk === 'write_low_risk', effect: 'allow' },
 *         { when: ({ args }, { limit }) => args.amount > limit, effect: 'review', quorum: 2 },
 *       ],
 *       { values: { limit: 100 } },
 *     )
 *
 * Throws if a rule uses a name from outside and the options have no `version`: the policy would behave
 * differently under the same hash, and approvals given before would stay valid.
 */
export function rules<const Values extends JsonObject = JsonObject>(
  list: readonly Rule<Values>[],
  options: RulesOptions<Values> = {},
): Policy {
  const { id = 'rules', version = '', mode = 'enforce' } = options
  if (options.version === undefined) checkSelfContained(list, id)
  // Copies, because the caller may change its own objects later, and the hash would stay the same.
  const values = freezeJson(JSON.parse(canonicalJson(options.values ?? {})) as Values)
  const own = list.map((rule) => ({ ...rule }))
  const texts = own.map(({ when, ...decision }) => ({ ...decision, when: String(when) }))
  return Object.freeze({
    id,
    mode,
    hash: hashJson({ id, version, rules: texts, values: options.values && values }),
    decide: (action: Action) =>
      combineDecisions(own.filter(({ when }) => when(action, values) === true)),
  })
}

function checkSelfContained(list: readonly Rule<never>[], id: string): void {
  const problems = list.flatMap(({ when }, index) => {
    const names = findFreeNames(when)
    if (!names) return [`rule ${index} hides its source`]
    return names.length > 0 ? [`rule ${index} uses ${names.join(', ')} from outside`] : []
  })
  if (problems.length === 0) return
  throw new SkeinError(
    `The hash of the policy "${id}" would not cover what its rules use: ${problems.join('; ')}.`,
    {
      code: 'GOVERNANCE_DEFINITION_INVALID',
      hint: 'Pass it: rules([{ when: (action, values) => … }], { values }), or give a version.',
    },
  )
}

let standardHash: Hash | undefined

/**
 * Allows low-risk writes and requires a person's approval for high-risk ones. It applies only if it is
 * set as the `policy` of a governor or a task class.
 */
export const standardPolicy: Policy = Object.freeze({
  id: 'standard',
  mode: 'enforce',
  // The hash covers a fixed version instead of the source text. Bundlers change the source text, and with
  // another hash the pending approvals would no longer be valid. It is made at first use, because making it
  // loads Node's cryptography.
  get hash() {
    return (standardHash ??= hashJson({ id: 'standard', version: '1' }))
  },
  decide: ({ risk, native }: Action): Decision | undefined => {
    if (risk === 'write_low_risk') return { effect: 'allow' }
    return risk === 'write_high_risk' && !native ? { effect: 'review' } : undefined
  },
})

/**
 * Combines several decisions: the strictest effect with the reasons for it, the highest quorum,
 * `fourEyes` if one decision requires it, and the first grant. Returns undefined for an empty list.
 */
export function combineDecisions(decisions: readonly Decision[]): Decision | undefined {
  if (decisions.length === 0) return undefined
  const strict = ['deny', 'review'] as const
  const effect = strict.find((name) => decisions.some((one) => one.effect === name)) ?? 'allow'
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

/**
 * Returns the hash of all policies that are not in shadow mode. When one of them changes, earlier
 * approvals are no longer valid.
 */
export function hashPolicies(policies: readonly Policy[]): Hash {
  const counting = policies.filter(({ mode }) => mode !== 'shadow')
  return hashJson(counting.map(({ id, hash }) => ({ id, hash })))
}
