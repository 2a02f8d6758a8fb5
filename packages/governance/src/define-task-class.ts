import type { Verifier } from './define-verifier.ts'
import type { Risk } from './envelope.ts'
import type { Need } from './evidence.ts'
import type { GovernedTool } from './governed.ts'
import type { Policy } from './policy.ts'

/** What must hold before a kind of task may deliver, and what it may do on the way. */
export interface TaskClass {
  readonly name: string
  readonly tools: readonly GovernedTool[]
  readonly needs: readonly Need[]
  readonly verifiers: readonly Verifier[]
  /** Combined with the governor's: deny > review > allow. */
  readonly policy?: Policy
  readonly repair?: RepairPolicy
  readonly limits?: TaskLimits
  /** Accept verifiers that are not mechanical; the choice is logged. */
  readonly acceptModelGraded?: boolean
  /** Accept `manual` rollbacks of high-risk writes. */
  readonly allowManualRollback?: boolean
}

/** §4.1: how often a failed run may try again. */
export interface RepairPolicy {
  readonly max: number
  /** Where to go back to, `plan` by default. */
  readonly to?: 'plan' | 'execute'
  /** Invert the writes of the failed attempt first; true by default. */
  readonly undoFirst?: boolean
}

export interface TaskLimits {
  readonly deadlineMs?: number
  readonly toolCalls?: number
  /** Levels of children; 3 by default. */
  readonly depth?: number
  /** No tool above this tier; `write_high_risk` by default. */
  readonly ceiling?: Risk
}
