import { hashJson } from './digest.ts'
import type { Action, Decision, Policy } from './policy.ts'

/** One rule: what to say about the actions it is meant for. */
export interface Rule extends Decision {
  readonly when: (action: Action) => boolean
}

export interface RulesOptions {
  readonly id?: string
  /** Say a new one when a rule changes through something its source text does not show. */
  readonly version?: string
  readonly mode?: 'enforce' | 'shadow'
}

/**
 * A policy from typed rules. All that match are heard: deny beats review beats allow. Where none
 * matches there is no opinion, and a write that no policy allows is denied.
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

/** Low-risk writes are allowed, high-risk ones go to a person. A sensible start, never the default. */
export const standardPolicy: Policy = Object.freeze({
  id: 'standard',
  mode: 'enforce',
  // Not from the source text, which bundlers change: approvals that are asked for outlive an upgrade.
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
    ...(reasons.length > 0 && { reasons }),
    quorum: Math.max(1, ...decisions.map((one) => one.quorum ?? 1)),
    fourEyes: decisions.some((one) => one.fourEyes === true),
    ...(grant !== undefined && { grant }),
  }
}
