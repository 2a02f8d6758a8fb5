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

/** What is known of a request: the fold of its journal entries and nothing else. */
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
   * Writes that happened or may have, own and of delivered children, in order of completion. One
   * that was in doubt and settled later stands twice; `undo` says which were inverted.
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

export interface CallState {
  readonly call: string
  readonly tool: string
  readonly risk: Risk
  readonly args_hash: Hash
  readonly attempt: number
  /** `started` without an end is in doubt once its process is gone. */
  readonly status: 'started' | 'done' | 'failed' | 'refused' | 'retry' | 'undone'
  readonly effect: Effect
  readonly policy_hash: Hash | undefined
  readonly rollback: RollbackAction | undefined
  readonly evidence: (EvidenceData & { readonly at: number }) | undefined
  readonly reasons: readonly Reason[]
}

export interface ReviewState extends ReviewData {
  readonly rollback: RollbackAction | undefined
  readonly answer: (AnswerData & { readonly seq: number; readonly at: number }) | undefined
}

export interface StepState extends StepData {
  readonly ok: boolean
}

export interface ChunkState {
  readonly hash: Hash
  readonly attempt: number
}

export interface ChildState extends ChildData {
  readonly attempt: number
  readonly settled: (ChildSettledData & { readonly outcome: Outcome }) | undefined
}

export interface ReportState extends VerifiedData {
  readonly passed: boolean
}

export interface UndoState extends EffectReference {
  /** Undefined while it runs. */
  readonly settled: UndoData | undefined
}

/** Key of an effect in `undo`. */
export function effectKey({ request_id, call }: EffectReference): string {
  return `${request_id}/${call}`
}

/** True once the last entry was written. */
export function isClosed({ delivered, failed }: GovernorState): boolean {
  return delivered !== undefined || failed !== undefined
}

/** True for a write that may or may not have happened. */
export function isInDoubt({ effect, status }: CallState): boolean {
  return effect === 'in_doubt' && status !== 'undone'
}

/** Calls that were named by the body keep their meaning in every attempt; others are positions. */
export function isNamedCall(call: string): boolean {
  return !/^\d+\.\d+$/.test(call)
}

/** Calls of the present attempt whose result stands. */
export function standingCalls(state: GovernorState): CallState[] {
  const standing: CallState[] = []
  for (const call of state.calls.values()) {
    const isCurrent = call.attempt === state.attempt || isNamedCall(call.call)
    if (isCurrent && call.status === 'done') standing.push(call)
  }
  return standing
}

/** Reviews nobody has answered for good. */
export function openReviews(state: GovernorState): ReviewState[] {
  return [...state.reviews.values()].filter(
    (review) => review.answer === undefined || review.answer.answer === 'rejected',
  )
}
