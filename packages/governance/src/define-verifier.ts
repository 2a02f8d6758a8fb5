import type { JsonValue } from '@skein/base'
import type { Evidence } from './evidence.ts'
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
