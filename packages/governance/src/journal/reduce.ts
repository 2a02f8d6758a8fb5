import {
  type ChunkState,
  effectKey,
  type GovernedCallState,
  type GovernedChildState,
  type GovernorState,
  type ReportState,
  type ReviewState,
  type StepState,
  type UndoState,
} from './governor-state.ts'
import { canTransition } from '../contract/envelope.ts'
import type { EffectReference, JournalItem } from './events.ts'
import { GovernanceError, reason, type Reason } from '../contract/reason.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

/** A GovernorState that this file may change in place. All other code gets it readonly. */
type Draft = Mutable<GovernorState> & {
  readonly calls: Map<string, GovernedCallState>
  readonly reviews: Map<string, ReviewState>
  readonly steps: Map<string, StepState>
  readonly children: Map<string, GovernedChildState>
  readonly undo: Map<string, UndoState>
  chunks: ChunkState[]
  effects: EffectReference[]
  reports: ReportState[]
  refusals: Reason[]
}

/**
 * Applies one entry to a request's state, in place. This is the only function that changes the state, for
 * live runs and for replays. Throws STATE_CONFLICT for an entry that cannot follow the previous ones.
 */
export function reduceJournal(state: GovernorState, item: JournalItem): void {
  const draft = state as Draft
  checkOrder(draft, item)
  draft.seq = item.seq + 1
  switch (item.type) {
    case 'opened':
    case 'planned':
    case 'native_tool':
      break
    case 'transition': {
      const isRepair = draft.state === 'verify' && item.state !== 'fail_safe'
      draft.state = item.state
      if (item.data.reasons) draft.why = item.data.reasons
      draft.missing = item.data.missing ?? []
      if (!isRepair) break
      draft.attempt += 1
      draft.reports = []
      draft.refusals = []
      break
    }
    case 'step':
      draft.steps.set(item.data.step, { ...item.data, ok: item.outcome === 'success' })
      break
    case 'chunk':
      draft.chunks.push({ hash: item.data.hash, attempt: item.attempt })
      break
    case 'review_requested': {
      const review = { ...item.data, rollback: item.rollback, answer: undefined }
      draft.reviews.set(item.data.call, review)
      break
    }
    case 'review_answered': {
      const review = draft.reviews.get(item.data.call)
      const answer = { ...item.data, seq: item.seq, at: item.at }
      if (review) draft.reviews.set(item.data.call, { ...review, answer })
      break
    }
    case 'call_started':
    case 'call_settled':
    case 'call_refused':
      return reduceCall(draft, item)
    case 'child_opened': {
      const child = { ...item.data, attempt: item.attempt, settled: undefined }
      draft.children.set(item.data.child, child)
      break
    }
    case 'child_settled': {
      const child = draft.children.get(item.data.child)
      if (!child) break
      const end = { ...item.data, outcome: item.outcome }
      draft.children.set(item.data.child, { ...child, settled: end })
      draft.callCount += item.data.calls
      for (const one of item.data.effects) {
        const { request_id, call } = one
        draft.effects.push({ request_id, call })
        if ('status' in one) draft.undo.set(effectKey(one), { request_id, call, settled: one })
      }
      break
    }
    case 'verified':
      draft.reports.push({ ...item.data, passed: item.outcome === 'success' })
      break
    case 'undo_started':
      draft.undo.set(effectKey(item.data), { ...item.data, settled: undefined })
      break
    case 'undo_settled': {
      const { request_id, call, status } = item.data
      draft.undo.set(effectKey(item.data), { request_id, call, settled: item.data })
      const own = request_id === draft.request_id ? draft.calls.get(call) : undefined
      if (own && status === 'done') draft.calls.set(call, { ...own, status: 'undone' })
      break
    }
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

/**
 * Checks that an entry may follow the previous ones: its number is the next one, the request has not
 * ended, and the entry keeps the state, unless it is a `transition` or `delivered`.
 */
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

/**
 * Applies an entry of a call. A read has only `call_settled`, a write has `call_started` before it, and a
 * refused call has only `call_refused`.
 */
function reduceCall(
  draft: Draft,
  item: JournalItem & { readonly type: 'call_started' | 'call_settled' | 'call_refused' },
): void {
  const { call, tool, risk, args_hash, sent_hash, schema } = item.data
  const before = draft.calls.get(call)
  // If a call with this id is still open, the entry belongs to it. Otherwise the entry begins a new call
  // with this id.
  const isOpen = before?.status === 'started' || before?.effect === 'in_doubt'
  if (!isOpen) draft.callCount += 1
  const base: GovernedCallState = {
    call,
    tool,
    risk,
    args_hash,
    sent_hash,
    schema,
    attempt: item.attempt,
    status: 'started',
    effect: 'none',
    round: before?.round ?? 1,
    policy_hash: isOpen ? before.policy_hash : undefined,
    rollback: isOpen ? before.rollback : undefined,
    evidence: undefined,
    reasons: [],
  }
  const reference = { request_id: draft.request_id, call }
  switch (item.type) {
    case 'call_started': {
      // A call that was undone in an earlier attempt is made again under the same id, so the old record of
      // its undoing is removed.
      draft.undo.delete(effectKey(reference))
      const { policy_hash } = item.data
      draft.calls.set(call, { ...base, effect: 'in_doubt', policy_hash, rollback: item.rollback })
      break
    }
    case 'call_settled': {
      const { effect, evidence, reasons = [], settled_by } = item.data
      const isDone = item.outcome === 'success' && evidence
      // A call whose effect was found to be absent may be made again. If a probe found that, or the tool is
      // idempotent, the call keeps its approval. A person can be wrong, so after a person's finding the call
      // needs a new approval.
      const mayRepeat = settled_by && effect === 'absent'
      const round = base.round + (mayRepeat && settled_by === 'person' ? 1 : 0)
      const status = isDone ? 'done' : mayRepeat ? 'retry' : 'failed'
      const newEvidence = evidence && { ...evidence, at: item.at }
      draft.calls.set(call, { ...base, round, status, effect, evidence: newEvidence, reasons })
      if (effect === 'applied' || effect === 'in_doubt') draft.effects.push(reference)
      break
    }
    case 'call_refused': {
      const { reasons } = item.data
      draft.calls.set(call, { ...base, status: 'refused', reasons })
      draft.refusals.push(...reasons)
    }
  }
}
