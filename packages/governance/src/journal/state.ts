import type { Hash, Identity, Outcome, Risk, RollbackAction, State } from '../contract/envelope.ts'
import type {
  AnswerData,
  ChildData,
  ChildSettledData,
  DeliveredData,
  Effect,
  EffectReference,
  EvidenceData,
  FailedData,
  OpenedData,
  ReviewData,
  StepData,
  UndoData,
  VerifiedData,
} from './events.ts'
import type { Reason } from '../contract/reason.ts'

/** All that is known of a request: the fold of its journal entries. */
export interface GovernorState {
  readonly request_id: string
  readonly trace_id: string
  readonly parent_trace_id: string | undefined
  readonly identity: Identity
  readonly opened: OpenedData
  readonly state: State
  /** 1, and one more with each repair. */
  readonly attempt: number
  /** Sequence number of the next entry. */
  readonly seq: number
  readonly startedAt: number
  readonly calls: ReadonlyMap<string, CallState>
  readonly callCount: number
  readonly reviews: ReadonlyMap<string, ReviewState>
  readonly steps: ReadonlyMap<string, StepState>
  readonly chunks: readonly ChunkState[]
  readonly children: ReadonlyMap<string, ChildState>
  /**
   * Writes that happened or may have, of the request and of its delivered children, in order of
   * completion. A write that was in doubt and was settled later is listed twice. `undo` says which
   * of them were undone.
   */
  readonly effects: readonly EffectReference[]
  readonly undo: ReadonlyMap<string, UndoState>
  /** Reports of the present attempt. */
  readonly reports: readonly ReportState[]
  /** Why calls of the present attempt were refused. */
  readonly refusals: readonly Reason[]
  /** Why the attempt before this one failed; in `fail_safe`, why the run did. */
  readonly why: readonly Reason[]
  readonly delivered: DeliveredData | undefined
  readonly failed: FailedData | undefined
}

/** One call of a request. */
export interface CallState {
  readonly call: string
  readonly tool: string
  readonly risk: Risk
  readonly args_hash: Hash
  readonly attempt: number
  /** A call that is `started` is in doubt once the process that made it is gone. */
  readonly status: 'started' | 'done' | 'failed' | 'refused' | 'retry' | 'undone'
  readonly effect: Effect
  readonly policy_hash: Hash | undefined
  readonly rollback: RollbackAction | undefined
  readonly evidence: (EvidenceData & { readonly at: number }) | undefined
  readonly reasons: readonly Reason[]
}

/** A question to people, with the latest answer. */
export interface ReviewState extends ReviewData {
  readonly rollback: RollbackAction | undefined
  readonly answer: (AnswerData & { readonly seq: number; readonly at: number }) | undefined
}

/** A recorded step; `ok` is false where it threw. */
export interface StepState extends StepData {
  readonly ok: boolean
}

/** A chunk of text that was streamed. */
export interface ChunkState {
  readonly hash: Hash
  readonly attempt: number
}

/** A nested run, with its end once it has one. */
export interface ChildState extends ChildData {
  readonly attempt: number
  readonly settled: (ChildSettledData & { readonly outcome: Outcome }) | undefined
}

/** A verifier's report of the present attempt. */
export interface ReportState extends VerifiedData {
  readonly passed: boolean
}

/** The undoing of one write. */
export interface UndoState extends EffectReference {
  /** Undefined while it runs. */
  readonly settled: UndoData | undefined
}

/** Key of an effect in `undo`. */
export function effectKey({ request_id, call }: EffectReference): string {
  return `${request_id}/${call}`
}

/** True once the request's last entry is written. */
export function isClosed({ delivered, failed }: GovernorState): boolean {
  return delivered !== undefined || failed !== undefined
}

/** True for a write that may or may not have happened. */
export function isInDoubt({ effect, status }: CallState): boolean {
  return effect === 'in_doubt' && status !== 'undone'
}

/**
 * True for a call id that the body chose: it means the same call in every attempt. An id like `1.2` is a
 * position (second call of the first attempt).
 */
export function isNamedCall(call: string): boolean {
  return !/^\d+\.\d+$/.test(call)
}

/** Calls whose results count in the present attempt: its own, and named ones of earlier attempts. */
export function standingCalls(state: GovernorState): CallState[] {
  const standing: CallState[] = []
  for (const call of state.calls.values()) {
    const isCurrent = call.attempt === state.attempt || isNamedCall(call.call)
    if (isCurrent && call.status === 'done') standing.push(call)
  }
  return standing
}

/** Reviews without an answer, or whose tokens were rejected: both still wait for people. */
export function openReviews(state: GovernorState): ReviewState[] {
  return [...state.reviews.values()].filter(
    (review) => review.answer === undefined || review.answer.answer === 'rejected',
  )
}
