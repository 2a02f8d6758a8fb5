import type { JsonValue } from '@skein/base'
import type { Evidence } from './evidence.ts'
import { invalidDefinition } from './invalid-definition.ts'
import type { Check, VerificationReport } from './report.ts'

/** A mechanical check of evidence against an invariant (§2). */
export interface Verifier {
  readonly id: string
  readonly timeoutMs: number
  /** False for checks graded by a model; they count only where the task class accepts them. */
  readonly mechanical?: boolean
  readonly check: (
    evidence: readonly Evidence[],
    context: VerifierContext,
  ) => VerifierAnswer | Promise<VerifierAnswer>
}

/** Checks, or a whole report from a verifier that lives elsewhere. Anything else fails. */
export type VerifierAnswer = readonly Check[] | VerificationReport

export interface VerifierContext {
  readonly request_id: string
  readonly candidate: JsonValue
  readonly signal: AbortSignal
}

/**
 * Declares a verifier: it looks at the evidence of a run and says, check by check, what holds.
 *
 *     const balanced = defineVerifier({
 *       id: 'ledger-balanced',
 *       timeoutMs: 500,
 *       check: ([ledger]) => [{ check_id: 'sum', result: sum(ledger) === 0 ? 'pass' : 'fail' }],
 *     })
 */
export function defineVerifier(verifier: Verifier): Verifier {
  const problems: string[] = []
  if (typeof verifier.id !== 'string' || verifier.id === '') problems.push('it has no id')
  if (typeof verifier.check !== 'function') problems.push('it has no check function')
  if (!(verifier.timeoutMs > 0)) problems.push('timeoutMs is not positive')
  if (problems.length > 0) throw invalidDefinition('verifier', verifier.id, problems)
  return Object.freeze({ ...verifier })
}
