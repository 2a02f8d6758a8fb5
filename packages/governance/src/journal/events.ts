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
import type { Reason } from '../contract/reason.ts'

/**
 * What an entry of the journal says. In the log it is an envelope: the type stands in
 * `metadata["uaicp:event"]`, the data in `metadata["uaicp:data"]`, beside `uaicp:seq` and
 * `uaicp:attempt`. A request's state is the fold of its events and of nothing else. Members that are
 * undefined are not in the line.
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

export type JournalEventType = JournalEvent['type']

/** An event with what its envelope says besides. */
export type JournalItem = JournalEvent & {
  readonly request_id: string
  readonly trace_id: string
  readonly parent_trace_id?: string | undefined
  readonly seq: number
  readonly attempt: number
  readonly state: State
  readonly outcome: Outcome
  readonly actor: Actor
  /** Milliseconds since 1970. */
  readonly at: number
  readonly rollback?: RollbackAction | undefined
  readonly streaming?: Streaming | undefined
}

export interface OpenedData {
  readonly governor: string
  readonly task: string
  readonly input_hash: Hash
  readonly policy_hash: Hash
  readonly depth: number
  readonly limits: RunLimits
  /** The request that opened this one as its child. */
  readonly parent?: string | undefined
  /** W3C traceparent of the surrounding distributed trace. */
  readonly traceparent?: string | undefined
}

/** Bounds of one run; a child's are never wider than its parent's. */
export interface RunLimits {
  /** Milliseconds since 1970. */
  readonly deadline?: number | undefined
  readonly tool_calls?: number | undefined
  readonly depth: number
  readonly ceiling: Risk
}

export interface TransitionData {
  readonly from: State
  readonly reasons?: readonly Reason[] | undefined
}

export interface StepData {
  readonly step: string
  readonly name: string
  /** Hash of the value, or of the error's text when the outcome is failure. */
  readonly hash: Hash
}

interface CallData {
  /** Unique within the request, the same on replay. */
  readonly call: string
  readonly tool: string
  readonly risk: Risk
  readonly args_hash: Hash
}

export interface ReviewData extends CallData {
  readonly review: string
  readonly digest: Hash
  readonly policy_hash: Hash
  readonly quorum: number
  readonly excluded: readonly string[]
  readonly expires_at: string
  readonly reasons?: readonly Reason[] | undefined
}

export interface AnswerData {
  readonly review: string
  readonly call: string
  readonly digest: Hash
  readonly answer: 'approved' | 'denied' | 'rejected' | 'expired'
  readonly approvers?: readonly Actor[] | undefined
  /** Ids of the tokens spent. */
  readonly tokens?: readonly string[] | undefined
  readonly reasons?: readonly Reason[] | undefined
}

/** Intent: on disk before a write starts. */
export interface StartedData extends CallData {
  readonly policy_hash: Hash
  readonly review?: string | undefined
  readonly digest?: Hash | undefined
  /** What policies in shadow mode would have said. */
  readonly shadow?: readonly ShadowData[] | undefined
}

export interface ShadowData {
  readonly policy: string
  readonly effect: 'allow' | 'deny' | 'review'
}

/** What is known of a call's effect on the world. `none` for reads. */
export type Effect = 'none' | 'applied' | 'absent' | 'in_doubt'

export interface SettledData extends CallData {
  readonly effect: Effect
  readonly evidence?: EvidenceData | undefined
  readonly reasons?: readonly Reason[] | undefined
  /** How an in-doubt effect was settled afterwards. */
  readonly settled_by?: 'probe' | 'person' | 'idempotent' | undefined
}

export interface EvidenceData {
  readonly id: string
  readonly type: EvidenceType
  readonly hash: Hash
  /** Hash of the tool's result, where the evidence is not the result itself. */
  readonly result_hash?: Hash | undefined
  readonly subtype?: string | undefined
}

export interface RefusedData extends CallData {
  readonly reasons: readonly Reason[]
  readonly shadow?: readonly ShadowData[] | undefined
}

export interface NativeData {
  readonly tool: string
  readonly allowed: boolean
  readonly reasons?: readonly Reason[] | undefined
}

export interface ChildData {
  readonly child: string
  readonly request_id: string
  readonly trace_id: string
  readonly task: string
}

export interface ChildSettledData extends ChildData {
  readonly reasons?: readonly Reason[] | undefined
  /** Hash of what the child delivered. */
  readonly hash?: Hash | undefined
  readonly calls: number
  /** Writes of the child and its children that the parent now answers for, in order of completion. */
  readonly effects: readonly EffectReference[]
}

export interface EffectReference {
  readonly request_id: string
  readonly call: string
}

export interface VerifiedData {
  readonly verifier: string
  readonly report: string
  readonly report_hash: Hash
  readonly evidence: readonly string[]
  readonly mechanical: boolean
  readonly reasons?: readonly Reason[] | undefined
}

/** `skipped`: no inverse was declared. `manual`: a person has to. `unknown`: ran on an effect in doubt. */
export type UndoStatus = 'done' | 'failed' | 'skipped' | 'manual' | 'unknown'

export interface UndoData extends EffectReference {
  readonly status: UndoStatus
  readonly tries: number
  readonly error?: string | undefined
}

export interface DeliveredData {
  readonly hash: Hash
  readonly evidence: readonly string[]
  readonly reports: readonly string[]
}

export interface FailedData {
  readonly reasons: readonly Reason[]
  readonly missing: readonly MissingNeed[]
  readonly undo: readonly UndoData[]
}
