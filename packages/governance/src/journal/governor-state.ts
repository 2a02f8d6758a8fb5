import type { Hash, Identity, Outcome, Risk, RollbackAction, State } from '../contract/envelope.ts'
import type {
  AnswerData,
  ChildData,
  ChildSettledData,
  DeliveredData,
  EffectReference,
  EvidenceData,
  FailedData,
  JournalItem,
  OpenedData,
  RecordedEffect,
  ReviewData,
  StepData,
  UndoData,
  VerifiedData,
} from './events.ts'
import type { MissingNeed } from '../contract/evidence.ts'
import type { Reason } from '../contract/reason.ts'

/** The whole state of a request, computed from its journal entries. */
export interface GovernorState {
  readonly request_id: string
  readonly trace_id: string
  readonly parent_trace_id: string | undefined
  readonly identity: Identity
  readonly opened: OpenedData
  readonly state: State
  /** Starts at 1 and grows by one with each repair. */
  readonly attempt: number
  /** Sequence number of the next entry. */
  readonly seq: number
  readonly startedAt: number
  readonly calls: ReadonlyMap<string, GovernedCallState>
  readonly callCount: number
  readonly reviews: ReadonlyMap<string, ReviewState>
  readonly steps: ReadonlyMap<string, StepState>
  readonly chunks: readonly ChunkState[]
  readonly children: ReadonlyMap<string, GovernedChildState>
  /**
   * Writes that happened or may have happened, of the request and of its children, in order of
   * completion. A write that was in doubt and then found to be applied is listed twice. `undo` contains which of these writes were undone.
   */
  readonly effects: readonly EffectReference[]
  readonly undo: ReadonlyMap<string, UndoState>
  /** The verifiers' reports of the current attempt. */
  readonly reports: readonly ReportState[]
  /** Why calls of the current attempt were refused. */
  readonly refusals: readonly Reason[]
  /** Why the previous attempt failed or, in `fail_safe`, why the whole run failed. */
  readonly why: readonly Reason[]
  /** In `fail_safe`: the required evidence that is missing. */
  readonly missing: readonly MissingNeed[]
  readonly delivered: DeliveredData | undefined
  readonly failed: FailedData | undefined
}
/** One call of a request. */
export interface GovernedCallState {
  readonly call: string
  readonly tool: string
  readonly risk: Risk
  readonly args_hash: Hash
  readonly sent_hash?: Hash
  readonly schema?: string
  readonly attempt: number
  /** A call that is still `started` after its process has died is in doubt. */
  readonly status: 'started' | 'done' | 'failed' | 'refused' | 'retry' | 'undone'
  readonly effect: RecordedEffect
  /** 1, and one more each time that a person found that the call had no effect and may be made again. */
  readonly round: number
  readonly policy_hash: Hash | undefined
  readonly rollback: RollbackAction | undefined
  readonly evidence: (EvidenceData & { readonly at: number }) | undefined
  readonly reasons: readonly Reason[]
}
/** An approval request, with the latest answer. */
export interface ReviewState extends ReviewData {
  readonly rollback: RollbackAction | undefined
  readonly answer: (AnswerData & { readonly seq: number; readonly at: number }) | undefined
}
/** A recorded step; `ok` is false if it threw an error. */
export interface StepState extends StepData {
  readonly ok: boolean
}
/** A chunk of text that was streamed. */
export interface ChunkState {
  readonly hash: Hash
  readonly attempt: number
}
/** A child run; `settled` is set once it has ended. */
export interface GovernedChildState extends ChildData {
  readonly attempt: number
  readonly settled: (ChildSettledData & { readonly outcome: Outcome }) | undefined
}
/** A verifier's report in the current attempt. */
export interface ReportState extends VerifiedData {
  readonly passed: boolean
}
/** The progress of undoing one write. */
export interface UndoState extends EffectReference {
  /** Undefined while the undoing is not finished. */
  readonly settled: UndoData | undefined
}

/** Creates the state of a request from its first entry, `opened`. */
export function openState(
  item: JournalItem & { readonly type: 'opened' },
  identity: Identity,
): GovernorState {
  return {
    request_id: item.request_id,
    trace_id: item.trace_id,
    parent_trace_id: item.parent_trace_id,
    identity,
    opened: item.data,
    state: 'intake',
    attempt: 1,
    seq: item.seq + 1,
    startedAt: item.at,
    calls: new Map(),
    callCount: 0,
    reviews: new Map(),
    steps: new Map(),
    chunks: [],
    children: new Map(),
    effects: decidedWrite(item.data),
    undo: new Map(),
    reports: [],
    refusals: [],
    why: [],
    missing: [],
    delivered: undefined,
    failed: undefined,
  }
}

function decidedWrite({ decided }: OpenedData): readonly EffectReference[] {
  return decided ? [{ request_id: decided.request_id, call: decided.call }] : []
}

/** Returns the key of a write in `GovernorState.undo`. */
export function effectKey({ request_id, call }: EffectReference): string {
  return `${request_id}/${call}`
}

/** True once the request's last entry is written. */
export function isClosed({ delivered, failed }: GovernorState): boolean {
  return delivered !== undefined || failed !== undefined
}

/** True for a write that may or may not have happened. */
export function isInDoubt({ effect, status }: GovernedCallState): boolean {
  return effect === 'in_doubt' && status !== 'undone'
}

/**
 * True for a call id that the body chose, which names the same call in every attempt. An id like `1.2` is
 * a position instead: the second call of the first attempt.
 */
export function isNamedCall(call: string): boolean {
  return !/^\d+\.\d+$/.test(call)
}

/**
 * Returns the completed calls whose results are valid in the current attempt: those made in it, and those of
 * earlier attempts whose id the body chose.
 */
export function standingCalls(state: GovernorState): GovernedCallState[] {
  const standing: GovernedCallState[] = []
  for (const call of state.calls.values()) {
    const isCurrent = call.attempt === state.attempt || isNamedCall(call.call)
    if (isCurrent && call.status === 'done') standing.push(call)
  }
  return standing
}

/**
 * Returns the approval requests that still wait for people: those without an answer, and those whose tokens
 * were rejected.
 */
export function openReviews(state: GovernorState): ReviewState[] {
  return [...state.reviews.values()].filter(
    (review) => review.answer === undefined || review.answer.answer === 'rejected',
  )
}
