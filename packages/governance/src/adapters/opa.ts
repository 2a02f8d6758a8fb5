import { hashJson } from '../contract/envelope.ts'
import type { Action, Decision, Policy } from '../contract/policy.ts'

/** A policy loaded by `loadPolicy` of `@open-policy-agent/opa-wasm`. */
export interface LoadedOpaPolicy {
  evaluate(input: unknown, entrypoint?: string | number): unknown
}

/** Options of `opaPolicy`. */
export interface OpaPolicyOptions {
  /** What `loadPolicy(wasm)` resolved to. */
  readonly policy: LoadedOpaPolicy
  /** Changes when the compiled policy or its data changes; a digest of the wasm file is a good one. */
  readonly version: string
  readonly entrypoint?: string | number
  readonly id?: string
  readonly mode?: 'enforce' | 'shadow'
}

/**
 * Rego, compiled to wasm by `opa build -t wasm`, as a policy. `input` is the action; the entry point
 * answers a decision: `{"effect": "allow" | "deny" | "review", "reasons"?, "quorum"?}`. `true` is
 * allow, `false` is deny, undefined is no opinion; anything else blocks the action.
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

/** A result set has one entry per answer; a document that is undefined has none. */
function toDecision(results: unknown): Decision | undefined {
  if (!Array.isArray(results)) throw new TypeError('OPA answered no result set.')
  if (results.length === 0) return undefined
  const { result } = results[0] as { readonly result: unknown }
  if (typeof result === 'boolean') return { effect: result ? 'allow' : 'deny' }
  // Whether the rest of the decision is well formed is for the governor to check.
  const decision = result as Decision | null | undefined
  if (!decision || !effects.has(decision.effect) || results.length > 1)
    throw new TypeError('OPA answered something else than one decision.')
  return decision
}

const effects: ReadonlySet<unknown> = new Set(['allow', 'deny', 'review'])
