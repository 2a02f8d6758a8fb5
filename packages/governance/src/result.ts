import type { ApprovalRequest } from './approval.ts'
import type { Checkpoint } from './audit-log.ts'
import type { RollbackAction } from './envelope.ts'
import type { Evidence, MissingNeed } from './evidence.ts'
import type { UndoStatus } from './journal-event.ts'
import type { Reason } from './reason.ts'
import type { VerificationReport } from './report.ts'

/** How a run ended, or what it waits for. There is no fourth case. */
export type Result<T> = Delivered<T> | FailedSafe | Pending

/** All invariants held. The only case with a value. */
export interface Delivered<T> {
  readonly state: 'deliver'
  readonly outcome: 'success'
  readonly value: T
  readonly evidence: readonly Evidence[]
  readonly reports: readonly VerificationReport[]
  readonly receipt: Receipt
}

/** Some invariant did not hold. Says why, what was missing and what became of every write. */
export interface FailedSafe {
  readonly state: 'fail_safe'
  readonly outcome: 'uncertain'
  readonly reasons: readonly Reason[]
  readonly missing: readonly MissingNeed[]
  readonly undo: readonly Undo[]
  readonly receipt: Receipt
}

/** Waits for people. Go on with `resume`. */
export interface Pending {
  readonly state: 'execute' | 'verify'
  readonly outcome: 'pending'
  readonly waiting: readonly ApprovalRequest[]
  readonly request_id: string
  /** Why tokens that were given were of no use. */
  readonly rejected?: readonly Reason[]
}

/** What became of one write. */
export interface Undo {
  readonly request_id: string
  readonly call: string
  readonly tool: string
  readonly action?: RollbackAction
  readonly status: UndoStatus
  readonly error?: string
}

/** Where in the log the run stands. */
export interface Receipt {
  readonly request_id: string
  readonly trace_id: string
  /** Indices of its first and last entry; undefined where the log could not be written. */
  readonly first: number | undefined
  readonly last: number | undefined
  /** Signed tree head, from logs that seal. */
  readonly checkpoint?: Checkpoint
}
