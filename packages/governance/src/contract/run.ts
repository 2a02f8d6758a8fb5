import type { JsonValue } from '@skein/base'
import type { ApprovalAnswer, ApprovalRequest } from './approval.ts'
import type { GovernedTool, TaskClass } from './governed.ts'
import type { Envelope, Identity, RollbackAction, Actor } from './envelope.ts'
import type { Evidence, MissingNeed, VerificationReport } from './evidence.ts'
import type { Reason } from './reason.ts'
import type { Checkpoint } from '../journal/journal.ts'
import type { UndoStatus } from '../journal/events.ts'

/** The parameters of a run. */
export interface Init {
  readonly identity: Identity
  readonly input: JsonValue
  /** A UUID; generated if absent. */
  readonly request_id?: string
  /** W3C trace id of this run, 32 hex digits; generated if absent. */
  readonly trace_id?: string
  /** W3C traceparent of the distributed trace that the run is part of; stored in the log. */
  readonly traceparent?: string
  readonly signal?: AbortSignal
  /**
   * Asks people for approval while the run is in progress. Without it, or if it answers `wait`, the run ends
   * with the outcome `pending`.
   */
  readonly approve?: (request: ApprovalRequest) => Promise<ApprovalAnswer>
  /**
   * Receives the streamed envelopes. All chunks are unverified until the last envelope confirms or
   * retracts them.
   */
  readonly onChunk?: (chunk: Envelope) => void
}

/**
 * The object through which the body of a governed run acts. The value that the body returns is only a
 * candidate: it is delivered only if all conditions of delivery are met.
 */
export interface Run {
  readonly request_id: string
  readonly trace_id: string
  readonly parent_trace_id: string | undefined
  readonly input: JsonValue
  readonly signal: AbortSignal
  /** Starts at 1 and grows by one with each repair. */
  readonly attempt: number
  /** Why the previous attempt failed; empty in the first attempt. */
  readonly why: readonly Reason[]
  /** The evidence of the calls completed so far in this execution of the body, as a frozen list. */
  readonly evidence: readonly Evidence[]
  /** Writes the hash of a model's proposal to the log. A proposal does not allow anything by itself. */
  plan(proposal: JsonValue): Promise<void>
  /**
   * Runs `fn` and records its value; when the body runs again after a resume, the recorded value is
   * returned. Use it for model calls and other reads.
   */
  step<T extends JsonValue>(name: string, fn: () => T | Promise<T>): Promise<T>
  /**
   * Runs a tool, if limits, policies and approvals allow the call. Throws GovernanceError if the call is
   * refused or fails.
   */
  call<Args, Result>(
    tool: GovernedTool<Args, Result>,
    args: Args,
    options?: CallOptions,
  ): Promise<CallResult<Result>>
  /**
   * Runs a child run within the limits of this run. Throws GovernanceError (CHILD_FAIL_SAFE) when the
   * child fails.
   */
  child<T extends JsonValue>(
    task: TaskClass,
    init: Partial<Pick<Init, 'identity' | 'input'>>,
    body: (run: Run) => Promise<T>,
  ): Promise<T>
  /** Streams text to the user, marked as unverified. */
  chunk(text: string): void
  /**
   * Asks the policies whether a tool that runs at the model's vendor may be used; throws unless a policy
   * allows it.
   */
  native(tool: string): Promise<void>
}

/** Options of `run.call`. */
export interface CallOptions {
  /**
   * A name for the call that is the same in every attempt. A completed call with this name is not made again
   * in a repair.
   */
  readonly id?: string
}

/** The result of a call: the tool's result, and the evidence made from it. */
export interface CallResult<Result> {
  readonly result: Result
  readonly evidence: Evidence
}

/** The result of a run: it was delivered, ended without delivery (failed safe), or waits for people. */
export type Result<T> = Delivered<T> | FailedSafe | Pending

/** The result of a run that met all conditions of delivery. Only a delivered run has a `value`. */
export interface Delivered<T> {
  readonly state: 'deliver'
  readonly outcome: 'success'
  readonly value: T
  readonly evidence: readonly Evidence[]
  readonly reports: readonly VerificationReport[]
  readonly receipt: Receipt
}

/**
 * The result of a run that was not delivered, because a condition was not met. It contains the reasons, the
 * required evidence that is missing, and the undo status of every write.
 */
export interface FailedSafe {
  readonly state: 'fail_safe'
  readonly outcome: 'uncertain'
  readonly reasons: readonly Reason[]
  readonly missing: readonly MissingNeed[]
  readonly undo: readonly Undo[]
  readonly receipt: Receipt
}

/** The result of a run that waits for people. Continue it with `resume`. */
export interface Pending {
  readonly state: 'execute' | 'verify'
  readonly outcome: 'pending'
  readonly waiting: readonly ApprovalRequest[]
  readonly request_id: string
  /** Why approval tokens that the caller passed in were not accepted. */
  readonly rejected?: readonly Reason[]
}

/** The undo status of one write of a run that failed. */
export interface Undo {
  readonly request_id: string
  readonly call: string
  readonly tool: string
  readonly action?: RollbackAction
  readonly status: UndoStatus
  readonly error?: string
}

/** Where the entries of a request are in the log. */
export interface Receipt {
  readonly request_id: string
  readonly trace_id: string
  /** Indices of the request's first and last entry; undefined if the log could not be written. */
  readonly first: number | undefined
  readonly last: number | undefined
  /** The signed size and root hash of the log, if the log makes checkpoints. */
  readonly checkpoint?: Checkpoint
}

/** The options of `resume`: the answers that people gave, and the callbacks to use from now on. */
export interface Resume extends Pick<Init, 'approve' | 'onChunk' | 'signal'> {
  /** Approval tokens in any order; each is matched to the request that it was signed for. */
  readonly tokens?: readonly string[]
  readonly denials?: readonly Denial[]
}

/** A person's refusal of one approval request. */
export interface Denial {
  /** Id of the approval request. */
  readonly id: string
  readonly reason: string
  readonly by?: Actor
}

/**
 * The answer to `open`: the request's ids, or the failed result if intake refused the request or the log
 * could not be written.
 */
export type Opening =
  | { readonly type: 'opened'; readonly request_id: string; readonly trace_id: string }
  | { readonly type: 'fail_safe'; readonly result: FailedSafe }
