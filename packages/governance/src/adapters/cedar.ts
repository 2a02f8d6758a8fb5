import type { JsonValue } from '@skein/base'
import { hashJson } from '../contract/envelope.ts'
import type { Action, Decision, Policy } from '../contract/policy.ts'
import { reason } from '../contract/reason.ts'

/** The part of `@cedar-policy/cedar-wasm` that is used here. */
export interface Cedar {
  preparsePolicySet(id: string, policies: { staticPolicies: Record<string, string> }): CedarAnswer
  statefulIsAuthorized(call: never): CedarAnswer
  policySetTextToParts(text: string):
    | { readonly type: 'failure'; readonly errors: readonly CedarError[] }
    | {
        readonly type: 'success'
        readonly policies: readonly string[]
        readonly policy_templates: readonly string[]
      }
  policyToJson(policy: string): { readonly type: string; readonly json?: unknown }
}

interface CedarError {
  readonly message: string
}

type CedarAnswer =
  | { readonly type: 'failure'; readonly errors: readonly CedarError[] }
  | {
      readonly type: 'success'
      readonly response?: {
        readonly decision: string
        readonly diagnostics: {
          readonly reason: readonly string[]
          readonly errors: readonly unknown[]
        }
      }
    }

/** Options of `cedarPolicy`. */
interface CedarPolicyOptions {
  /** The module `@cedar-policy/cedar-wasm`. */
  readonly cedar: Cedar
  /**
   * Cedar policies as text. The annotation `@review("reason")` on a permit requires a person's approval.
   */
  readonly policies: string
  readonly id?: string
  readonly mode?: 'enforce' | 'shadow'
  /** Returns the entities that the policies refer to, for one action. */
  readonly entities?: (action: Action) => readonly JsonValue[]
}

/**
 * Creates a policy that Cedar decides. The principal is `Agent::"<agent_id>"`, the action
 * `Action::"<tool>"`, the resource `Task::"<task>"`; `context` has `args`, `risk`, `identity`, `depth`
 * and `rollback`. A forbid overrides every permit. A permit with `@review` requires approval;
 * `@quorum("2")` sets how many people must approve.
 */
export function cedarPolicy(options: CedarPolicyOptions): Policy {
  const { cedar, policies, id = 'cedar', mode = 'enforce', entities } = options
  const hash = hashJson({ id, policies })
  const setId = `${id}/${hash}`
  const texts = splitPolicies(cedar, policies)
  const policySet = cedar.preparsePolicySet(setId, { staticPolicies: Object.fromEntries(texts) })
  if (policySet.type === 'failure')
    throw new TypeError(`Cedar policies: ${messages(policySet.errors)}`)
  const annotations = new Map(
    Array.from(texts, ([name, text]) => [name, readAnnotations(cedar, text)]),
  )
  return {
    id,
    mode,
    hash,
    decide(action) {
      const { args, risk, identity, depth, rollback } = action
      const answer = cedar.statefulIsAuthorized({
        principal: { type: 'Agent', id: action.identity.agent_id },
        action: { type: 'Action', id: action.tool },
        resource: { type: 'Task', id: action.task },
        context: toCedar({ args, risk, identity, depth, rollback }),
        preparsedPolicySetId: setId,
        entities: entities?.(action) ?? [],
      } as never)
      if (answer.type === 'failure') throw new Error(messages(answer.errors))
      return toDecision(answer, annotations, action.tool)
    },
  }
}

function toDecision(
  answer: CedarAnswer & { readonly type: 'success' },
  annotations: ReadonlyMap<string, Annotations>,
  tool: string,
): Decision {
  const { decision, diagnostics } = answer.response ?? { decision: 'deny', diagnostics: noReasons }
  // Cedar skips a policy that it cannot evaluate, even a forbid. The action must not be allowed because
  // of that, so it is an error.
  if (diagnostics.errors.length > 0) throw new Error('A Cedar policy could not be evaluated.')
  const names = diagnostics.reason
  if (decision !== 'allow') {
    const detail = names.length > 0 ? `forbidden by ${names.join(', ')}` : 'no policy permits it'
    return { effect: 'deny', reasons: [reason('POLICY_BLOCKED', tool, detail)] }
  }
  const found = names.map((name) => {
    const annotation = annotations.get(name)
    // Without its annotations it is not known whether the permit needs a person's approval.
    if (!annotation) throw new Error(`Cedar named a policy "${name}" that was not given to it.`)
    return annotation
  })
  const reviews = found.filter((one) => one.review !== undefined)
  // A single permit without `@review` allows the action; people are asked only if every permit has
  // `@review`.
  if (reviews.length < found.length) return { effect: 'allow' }
  const quorum = Math.max(...reviews.map((one) => Number(one.quorum ?? 1)))
  const reasons = reviews.map((one) => reason('APPROVAL_REQUIRED', tool, one.review))
  return { effect: 'review', reasons, quorum }
}

const noReasons = { reason: [], errors: [] }

interface Annotations {
  readonly review?: string
  readonly quorum?: string
}

/**
 * Splits a text into its policies, by name. The names are given to Cedar together with the policies, so that
 * a name in an answer and the annotations of that policy cannot get out of step. They are the names that
 * Cedar itself gives to the policies of a text (`policy0`, `policy1`, … in order); it returns the policies
 * sorted by these names as text, so `policy10` comes before `policy2`.
 */
function splitPolicies(cedar: Cedar, text: string): ReadonlyMap<string, string> {
  const parts = cedar.policySetTextToParts(text)
  if (parts.type === 'failure') throw new TypeError(`Cedar policies: ${messages(parts.errors)}`)
  if (parts.policy_templates.length > 0)
    throw new TypeError('Cedar policies: templates are not supported; write them out as policies.')
  const names = parts.policies.map((_, index) => `policy${index}`).toSorted()
  return new Map(parts.policies.map((policy, index) => [names[index]!, policy]))
}

function readAnnotations(cedar: Cedar, policy: string): Annotations {
  const { json } = cedar.policyToJson(policy)
  const { annotations = {} } = (json ?? {}) as { readonly annotations?: Annotations }
  return annotations
}

/**
 * Converts a JSON value for Cedar, which has neither null nor fractions. Nulls in objects and arrays are
 * left out. A fraction becomes text, so that a rule that compares it fails, and a failed rule denies the
 * action.
 */
function toCedar(value: unknown): unknown {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value : String(value)
  if (Array.isArray(value)) return value.filter((item) => item !== null).map(toCedar)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).filter(
    ([, member]) => member !== null && member !== undefined,
  )
  return Object.fromEntries(members.map(([name, member]) => [name, toCedar(member)]))
}

function messages(errors: readonly { readonly message: string }[]): string {
  return errors.map(({ message }) => message).join('; ')
}
