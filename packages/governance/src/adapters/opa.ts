import { hashJson } from '../contract/envelope.ts'
import type { Action, Decision, Policy } from '../contract/policy.ts'

/** A policy loaded by `loadPolicy` of `@open-policy-agent/opa-wasm`. */
export interface LoadedOpaPolicy {
  evaluate(input: unknown, entrypoint?: string | number): unknown
}

/** Options of `opaPolicy`. */
interface OpaPolicyOptions {
  /** The policy that `loadPolicy(wasm)` resolved to. */
  readonly policy: LoadedOpaPolicy
  /**
   * Must change whenever the compiled policy or its data changes, for example a digest of the wasm file.
   */
  readonly version: string
  readonly entrypoint?: string | number
  readonly id?: string
  readonly mode?: 'enforce' | 'shadow'
}

/**
 * Creates a policy from Rego code that was compiled to wasm with `opa build -t wasm`. `input` is the
 * action. The entry point returns a decision: `{"effect": "allow" | "deny" | "review", "reasons"?,
 * "quorum"?}`. `true` means allow, `false` deny, and undefined no opinion; anything else denies the
 * action.
 */
export function opaPolicy(options: OpaPolicyOptions): Policy {
  const { policy, version, entrypoint, id = 'opa', mode = 'enforce' } = options
  return {
    id,
    mode,
    hash: hashJson({ id, version, entrypoint: entrypoint ?? 0 }),
    decide: (action) => toDecision(policy.evaluate(action satisfies Action, entrypoint ?? 0)),
  }
}

/** Converts OPA's result set into a decision. The set is empty if the result is undefined in Rego. */
function toDecision(results: unknown): Decision | undefined {
  if (!Array.isArray(results)) throw new TypeError('OPA answered no result set.')
  if (results.length === 0) return undefined
  const [first, ...others] = results as readonly ({ readonly result?: unknown } | null)[]
  const result = others.length === 0 ? first?.result : undefined
  if (typeof result === 'boolean') return { effect: result ? 'allow' : 'deny' }
  // Only the effect is checked here; the governor checks the other members of the decision.
  const decision = result as Decision | null | undefined
  if (!decision || !effects.has(decision.effect))
    throw new TypeError('OPA answered something else than one decision.')
  return decision
}

const effects: ReadonlySet<unknown> = new Set(['allow', 'deny', 'review'])
