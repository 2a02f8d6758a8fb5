import type { JsonValue } from '@skein/base'
import type { ApprovalAnswer, ApprovalRequest } from './approval.ts'
import type { GovernedTool, TaskClass } from './governed.ts'
import type { Envelope, Identity, RollbackAction } from './envelope.ts'
import type { Evidence, MissingNeed, VerificationReport } from './evidence.ts'
import type { Reason } from './reason.ts'
import type { Checkpoint } from '../journal/journal.ts'
import type { UndoStatus } from '../journal/events.ts'

/** How a run begins. */
export interface Init {
  readonly identity: Identity
  readonly input: JsonValue
  /** A UUID; made if absent. */
  readonly request_id?: string
  /** W3C trace id of this run, 32 hex digits; made if absent. */
  readonly trace_id?: string
  /** W3C traceparent of the distributed trace around it; kept in the log. */
  readonly traceparent?: string
  readonly signal?: AbortSignal
  /** Asks for approval while the run waits. Without it, or with answer `wait`, the run ends pending. */
  readonly approve?: (request: ApprovalRequest) => Promise<ApprovalAnswer>
  /** Receives streamed envelopes; all but the last are unverified. */
  readonly onChunk?: (chunk: Envelope) => void
}

/** What the body of a governed run works with. What it returns is only a candidate. */
export interface Run {
  readonly request_id: string
  readonly trace_id: string
  readonly parent_trace_id: string | undefined
  readonly input: JsonValue
  readonly signal: AbortSignal
  /** 1, then one more per repair. */
  readonly attempt: number
  /** Why the attempt before this one failed. */
  readonly why: readonly Reason[]
  /** Evidence of this attempt, frozen. */
  readonly evidence: readonly Evidence[]
  /** Logs the hash of what a model proposes. A proposal permits nothing. */
  plan(proposal: JsonValue): Promise<void>
  /** Runs `fn` once per request: a resume gets the recorded value. For model calls and other reads. */
  step<T extends JsonValue>(name: string, fn: () => T | Promise<T>): Promise<T>
  /** Runs a tool through the pre-action gate. Throws GovernanceError where the gate refuses. */
  call<Args, Result>(
    tool: GovernedTool<Args, Result>,
    args: Args,
    options?: CallOptions,
  ): Promise<CallResult<Result>>
  /** A nested run within this one's bounds. Throws GovernanceError (CHILD_FAIL_SAFE) when it fails. */
  child<T extends JsonValue>(
    task: TaskClass,
    init: Partial<Pick<Init, 'identity' | 'input'>>,
    body: (run: Run) => Promise<T>,
  ): Promise<T>
  /** Streams text, marked unverified. */
  chunk(text: string): void
  /** Asks whether a tool at the model's vendor may be used; throws unless policy allows it. */
  native(tool: string): Promise<void>
}

/** Options of `run.call`. */
export interface CallOptions {
  /** A name that is the same in every attempt: a completed call is not run again in a repair. */
  readonly id?: string
}

/** What a call gave: the tool's result, and the evidence made of it. */
export interface CallResult<Result> {
  readonly result: Result
  readonly evidence: Evidence
}

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

/** Some invariant did not hold. Says why, which needs were not met, and what became of every write. */
export interface FailedSafe {
  readonly state: 'fail_safe'
  readonly outcome: 'uncertain'
  readonly reasons: readonly Reason[]
  readonly missing: readonly MissingNeed[]
  readonly undo: readonly Undo[]
  readonly receipt: Receipt
}

/** The run waits for people. Continue it with `resume`. */
export interface Pending {
  readonly state: 'execute' | 'verify'
  readonly outcome: 'pending'
  readonly waiting: readonly ApprovalRequest[]
  readonly request_id: string
  /** Why tokens that were given do not count. */
  readonly rejected?: readonly Reason[]
}

/** What became of one write of a run that failed. */
export interface Undo {
  readonly request_id: string
  readonly call: string
  readonly tool: string
  readonly action?: RollbackAction
  readonly status: UndoStatus
  readonly error?: string
}

/** Where the request is in the log. */
export interface Receipt {
  readonly request_id: string
  readonly trace_id: string
  /** Indices of its first and last entry; undefined where the log could not be written. */
  readonly first: number | undefined
  readonly last: number | undefined
  /** Signed tree head, from logs that seal. */
  readonly checkpoint?: Checkpoint
}
