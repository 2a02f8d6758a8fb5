import { canTransition, type Identity } from '../contract/envelope.ts'
import {
  type CallState,
  type ChildState,
  type ChunkState,
  effectKey,
  type GovernorState,
  type ReportState,
  type ReviewState,
  type StepState,
  type UndoState,
} from './state.ts'
import type {
  AnswerData,
  ChildSettledData,
  EffectReference,
  JournalItem,
  SettledData,
  StartedData,
  UndoData,
} from './events.ts'
import { GovernanceError, reason, type Reason } from '../contract/reason.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/** The accumulator behind a GovernorState. It may change in place; nobody outside may do so. */
type Draft = Mutable<GovernorState> & {
  readonly calls: Map<string, CallState>
  readonly reviews: Map<string, ReviewState>
  readonly steps: Map<string, StepState>
  readonly children: Map<string, ChildState>
  readonly undo: Map<string, UndoState>
  chunks: ChunkState[]
  effects: EffectReference[]
  reports: ReportState[]
  refusals: Reason[]
}

/** State after the first entry, `opened`. */
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
    effects: [],
    undo: new Map(),
    reports: [],
    refusals: [],
    why: [],
    delivered: undefined,
    failed: undefined,
  }
}

/**
 * Folds one entry into a request's state, in place. The only place that state changes; live runs and
 * replays both come through here. Entries that cannot follow each other throw STATE_CONFLICT.
 */
export function reduceJournal(state: GovernorState, item: JournalItem): void {
  const draft = state as Draft
  checkOrder(draft, item)
  draft.seq = item.seq + 1
  switch (item.type) {
    case 'opened':
      break
    case 'transition':
      return moveTo(draft, item)
    case 'planned':
    case 'native_tool':
      break
    case 'step':
      draft.steps.set(item.data.step, { ...item.data, ok: item.outcome === 'success' })
      break
    case 'chunk':
      draft.chunks.push({ hash: item.data.hash, attempt: item.attempt })
      break
    case 'review_requested':
      draft.reviews.set(item.data.call, {
        ...item.data,
        rollback: item.rollback,
        answer: undefined,
      })
      break
    case 'review_answered':
      return answerReview(draft, item.data, item)
    case 'call_started':
      return startCall(draft, item.data, item)
    case 'call_settled':
      return settleCall(draft, item.data, item)
    case 'call_refused':
      draft.calls.set(item.data.call, {
        ...callOf(draft, item.data, item.attempt),
        status: 'refused',
        reasons: item.data.reasons,
      })
      draft.refusals.push(...item.data.reasons)
      break
    case 'child_opened':
      draft.children.set(item.data.child, {
        ...item.data,
        attempt: item.attempt,
        settled: undefined,
      })
      break
    case 'child_settled':
      return settleChild(draft, item.data, item)
    case 'verified':
      draft.reports.push({ ...item.data, passed: item.outcome === 'success' })
      break
    case 'undo_started':
      draft.undo.set(effectKey(item.data), { ...item.data, settled: undefined })
      break
    case 'undo_settled':
      return settleUndo(draft, item.data)
    case 'delivered':
      draft.state = 'deliver'
      draft.delivered = item.data
      break
    case 'failed_safe':
      draft.failed = item.data
      break
    default:
      item satisfies never
  }
}

/** Entries are contiguous, and stay in the state they claim; only these three change it. */
function checkOrder(draft: Draft, item: JournalItem): void {
  const isTransition = item.type === 'transition' || item.type === 'delivered'
  const isPossible = isTransition
    ? canTransition(draft.state, item.state) &&
      (item.type === 'delivered') === (item.state === 'deliver')
    : item.state === draft.state
  if (isPossible && item.seq === draft.seq && !draft.delivered && !draft.failed) return
  throw new GovernanceError(
    `Entry ${item.seq} (${item.type}) of request ${draft.request_id} cannot follow what is in its journal.`,
    [reason('STATE_CONFLICT', draft.request_id, `${draft.state} to ${item.state}`)],
    { hint: 'Read the journal again.' },
  )
}

function moveTo(draft: Draft, item: JournalItem & { readonly type: 'transition' }): void {
  const isRepair = draft.state === 'verify' && item.state !== 'fail_safe'
  draft.state = item.state
  if (item.data.reasons) draft.why = item.data.reasons
  if (!isRepair) return
  draft.attempt += 1
  draft.reports = []
  draft.refusals = []
}

function callOf(
  draft: Draft,
  data: Pick<CallState, 'call' | 'tool' | 'risk' | 'args_hash'>,
  attempt: number,
): CallState {
  const { call, tool, risk, args_hash } = data
  const before = draft.calls.get(call)
  // A settled entry goes on with what its intent said; any other is a new call under this id.
  const isOpen = before?.status === 'started' || before?.effect === 'in_doubt'
  const { policy_hash, rollback } = isOpen
    ? before
    : { policy_hash: undefined, rollback: undefined }
  if (!isOpen) draft.callCount += 1
  return {
    call,
    tool,
    risk,
    args_hash,
    attempt,
    status: 'started',
    effect: 'none',
    policy_hash,
    rollback,
    evidence: undefined,
    reasons: [],
  }
}

function startCall(draft: Draft, data: StartedData, item: JournalItem): void {
  // A named call that was inverted in an earlier attempt happens anew.
  draft.undo.delete(effectKey({ request_id: draft.request_id, call: data.call }))
  draft.calls.set(data.call, {
    ...callOf(draft, data, item.attempt),
    effect: 'in_doubt',
    policy_hash: data.policy_hash,
    rollback: item.rollback,
  })
}

function settleCall(draft: Draft, data: SettledData, item: JournalItem): void {
  const { effect, evidence, reasons = [] } = data
  draft.calls.set(data.call, {
    ...callOf(draft, data, item.attempt),
    status: statusOf(data, item),
    effect,
    evidence: evidence && { ...evidence, at: item.at },
    reasons,
  })
  if (effect !== 'applied' && effect !== 'in_doubt') return
  draft.effects.push({ request_id: draft.request_id, call: data.call })
}

function statusOf(
  { evidence, effect, settled_by }: SettledData,
  item: JournalItem,
): CallState['status'] {
  if (item.outcome === 'success' && evidence) return 'done'
  // The effect is known not to be there, so the same call may run again under its approval.
  if (settled_by && effect === 'absent') return 'retry'
  return 'failed'
}

function answerReview(draft: Draft, data: AnswerData, item: JournalItem): void {
  const review = draft.reviews.get(data.call)
  if (!review) return
  draft.reviews.set(data.call, { ...review, answer: { ...data, seq: item.seq, at: item.at } })
}

function settleChild(draft: Draft, data: ChildSettledData, item: JournalItem): void {
  const child = draft.children.get(data.child)
  if (!child) return
  draft.children.set(data.child, { ...child, settled: { ...data, outcome: item.outcome } })
  draft.callCount += data.calls
  draft.effects.push(...data.effects)
}

function settleUndo(draft: Draft, data: UndoData): void {
  draft.undo.set(effectKey(data), { request_id: data.request_id, call: data.call, settled: data })
  const call = data.request_id === draft.request_id ? draft.calls.get(data.call) : undefined
  if (call && data.status === 'done') draft.calls.set(data.call, { ...call, status: 'undone' })
}
