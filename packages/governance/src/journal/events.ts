import type { EvidenceType, MissingNeed } from '../contract/evidence.ts'
import type {
  Actor,
  Hash,
  Outcome,
  Risk,
  RollbackAction,
  State,
  Streaming,
} from '../contract/envelope.ts'
import type { RefusedToken } from '../contract/approval.ts'
import type { Reason } from '../contract/reason.ts'

/**
 * One event of a request. In the log an event is an envelope: its type is in `metadata["uaicp:event"]`,
 * its data in `metadata["uaicp:data"]`, next to `uaicp:seq` and `uaicp:attempt`. The state of a request is
 * computed from its events alone. Members that are undefined are left out of the line.
 */
export type JournalEvent =
  | { readonly type: 'opened'; readonly data: OpenedData }
  | { readonly type: 'transition'; readonly data: TransitionData }
  | { readonly type: 'planned'; readonly data: { readonly hash: Hash } }
  | { readonly type: 'step'; readonly data: StepData }
  | { readonly type: 'review_requested'; readonly data: ReviewData }
  | { readonly type: 'review_answered'; readonly data: AnswerData }
  | { readonly type: 'call_started'; readonly data: StartedData }
  | { readonly type: 'call_settled'; readonly data: SettledData }
  | { readonly type: 'call_refused'; readonly data: RefusedData }
  | { readonly type: 'native_tool'; readonly data: NativeData }
  | { readonly type: 'chunk'; readonly data: { readonly hash: Hash } }
  | { readonly type: 'child_opened'; readonly data: ChildData }
  | { readonly type: 'child_settled'; readonly data: ChildSettledData }
  | { readonly type: 'verified'; readonly data: VerifiedData }
  | { readonly type: 'undo_started'; readonly data: EffectReference }
  | { readonly type: 'undo_settled'; readonly data: UndoData }
  | { readonly type: 'delivered'; readonly data: DeliveredData }
  | { readonly type: 'failed_safe'; readonly data: FailedData }

/** An event together with the rest of its envelope. */
export type JournalItem = JournalEvent & {
  readonly request_id: string
  readonly trace_id: string
  readonly parent_trace_id?: string
  readonly seq: number
  readonly attempt: number
  readonly state: State
  readonly outcome: Outcome
  readonly actor: Actor
  /** Milliseconds since 1970. */
  readonly at: number
  readonly rollback?: RollbackAction
  readonly streaming?: Streaming
}

/** `opened`: the first event of a request. */
export interface OpenedData {
  readonly governor: string
  readonly task: string
  readonly input_hash: Hash
  readonly policy_hash: Hash
  readonly depth: number
  readonly limits: RunLimits
  /** Id of the parent request, if this request is a child. */
  readonly parent?: string
  /** W3C traceparent of the surrounding distributed trace. */
  readonly traceparent?: string
  /** Set if the request carries out what a person decided about a write of another request (`undoDecided`). */
  readonly decided?: DecidedWrite
}

/** A person's decision about a write of a request that failed safe, whose effect was not known then. */
export interface DecidedWrite extends EffectReference {
  /** What the person found out. Only a write that was `applied` is undone. */
  readonly found: 'applied' | 'absent' | 'unknown'
}

/**
 * The limits of one run. Deadline, depth and ceiling of a child are never wider than those of its parent.
 */
export interface RunLimits {
  /** Milliseconds since 1970. */
  readonly deadline?: number
  readonly tool_calls?: number
  readonly depth: number
  readonly ceiling: Risk
}

/** `transition`: the request moves to another state. */
export interface TransitionData {
  readonly from: State
  readonly reasons?: readonly Reason[]
  /** In a transition to `fail_safe`: the required evidence that is missing. */
  readonly missing?: readonly MissingNeed[]
}

/** `step`: the outcome of one `run.step`; its value is in the payload store. */
export interface StepData {
  readonly step: string
  readonly name: string
  /** Hash of the value, or of the error's text when the outcome is failure. */
  readonly hash: Hash
}

interface CallData {
  /** The id of the call: unique within the request, and the same when the call is replayed. */
  readonly call: string
  readonly tool: string
  readonly risk: Risk
  readonly args_hash: Hash
  /** Hash of what the model sent, if the tool has parsed it; `args_hash` is then that of the parsed arguments. */
  readonly sent_hash?: Hash
  /** Hash of the schema that parsed them; without it, the caller of the governor did. */
  readonly schema?: string
}

/** `review_requested`: people were asked to approve a call. */
export interface ReviewData extends CallData {
  readonly review: string
  readonly digest: Hash
  readonly policy_hash: Hash
  readonly quorum: number
  readonly excluded: readonly string[]
  readonly expires_at: string
  readonly reasons?: readonly Reason[]
}

/** `review_answered`: people approved or denied the call, or their tokens were not accepted. */
export interface AnswerData {
  readonly review: string
  readonly call: string
  readonly digest: Hash
  readonly answer: 'approved' | 'denied' | 'rejected' | 'expired'
  readonly approvers?: readonly Actor[]
  /** Ids of the tokens spent. */
  readonly tokens?: readonly string[]
  /** Of a rejected answer: the tokens that were not accepted. */
  readonly refused?: readonly RefusedToken[]
  readonly reasons?: readonly Reason[]
}

/** `call_started`: a write is about to run (its intent); stored on disk before its tool runs. */
export interface StartedData extends CallData {
  readonly policy_hash: Hash
  readonly review?: string
  readonly digest?: Hash
  /** The decisions of policies in shadow mode, which have no effect. */
  readonly shadow?: readonly ShadowData[]
}

/** The decision of one policy in shadow mode, which has no effect. */
export interface ShadowData {
  readonly policy: string
  readonly effect: 'allow' | 'deny' | 'review'
}

/** What is known of a call's effect. Reads have `none`. */
export type RecordedEffect = 'none' | 'applied' | 'absent' | 'in_doubt'

/** `call_settled`: the end of a call. */
export interface SettledData extends CallData {
  readonly effect: RecordedEffect
  readonly evidence?: EvidenceData
  readonly reasons?: readonly Reason[]
  /**
   * Set if the effect was unknown at first: who found it out later; `idempotent` if the tool may simply run
   * again.
   */
  readonly settled_by?: 'probe' | 'person' | 'idempotent'
}

/** The evidence made from a call's result; its payload is in the payload store. */
export interface EvidenceData {
  readonly id: string
  readonly type: EvidenceType
  readonly hash: Hash
  /** Hash of the tool's result, if the evidence has a different payload. */
  readonly result_hash?: Hash
  readonly subtype?: string
}

/** `call_refused`: a call was denied before it ran. */
export interface RefusedData extends CallData {
  readonly reasons: readonly Reason[]
  readonly shadow?: readonly ShadowData[]
}

/** `native_tool`: whether a tool that runs at the model's vendor was allowed. */
export interface NativeData {
  readonly tool: string
  readonly allowed: boolean
  readonly reasons?: readonly Reason[]
}

/** `child_opened`: a child run was started. The parent writes this before the child's first entry. */
export interface ChildData {
  readonly child: string
  readonly request_id: string
  readonly trace_id: string
  readonly task: string
}

/** `child_settled`: a child run ended. */
export interface ChildSettledData extends ChildData {
  readonly reasons?: readonly Reason[]
  /** Hash of the value that the child delivered. */
  readonly hash?: Hash
  readonly calls: number
  /**
   * The writes of the child, in order of completion. A write that the child undid, or could not undo, has
   * the result of that; the others have to be undone by the parent if it fails.
   */
  readonly effects: readonly (EffectReference | UndoData)[]
}

/** A reference to one write: the request that made it, and the call. */
export interface EffectReference {
  readonly request_id: string
  readonly call: string
}

/** `verified`: one verifier's report. */
export interface VerifiedData {
  readonly verifier: string
  readonly report: string
  readonly report_hash: Hash
  readonly evidence: readonly string[]
  readonly mechanical: boolean
  readonly reasons?: readonly Reason[]
}

/**
 * The result of undoing a write. `skipped`: no rollback was declared. `manual`: a person has to undo it.
 * `impossible`: it was declared, and approved, as something that cannot be undone.
 * `in_doubt`: it is unknown whether the write happened, so nothing ran; a person has to find out and decide.
 * `unknown`: the rollback ran or may have run, but it is not known whether it undid the write.
 */
export type UndoStatus =
  'done' | 'failed' | 'skipped' | 'manual' | 'impossible' | 'in_doubt' | 'unknown'

/** `undo_settled`: the attempt to undo one write has ended. */
export interface UndoData extends EffectReference {
  readonly status: UndoStatus
  readonly tries: number
  readonly error?: string
}

/** `delivered`: the last event of a request that succeeded. */
export interface DeliveredData {
  readonly hash: Hash
  readonly evidence: readonly string[]
  readonly reports: readonly string[]
}

/** `failed_safe`: the last event of a request that ended without delivery. */
export interface FailedData {
  readonly reasons: readonly Reason[]
  readonly missing: readonly MissingNeed[]
  readonly undo: readonly UndoData[]
}
