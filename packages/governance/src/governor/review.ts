import { actionDigest, type Actor, type Hash } from '../contract/envelope.ts'
import type { Candidate } from './candidate.ts'
import type { ApprovalAnswer, ApprovalRequest, Redemption } from '../contract/approval.ts'
import type { ReviewState } from '../journal/state.ts'
import { timestampOf } from '../journal/journal.ts'
import type { Action, Decision } from '../contract/policy.ts'
import { messageOf, reason, type Reason } from '../contract/reason.ts'
import type { GovernedRequest } from './request.ts'

interface Question {
  readonly made: Candidate
  readonly action: Action
  readonly decision: Decision
  readonly answer: ApprovalAnswer | undefined
}

type Reviewed =
  | {
      readonly type: 'approved'
      readonly approval: { readonly review: string; readonly digest: Hash }
    }
  | { readonly type: 'denied'; readonly reason: Reason }
  | {
      readonly type: 'waiting'
      readonly request: ApprovalRequest
      readonly rejection?: { readonly rejected: Reason }
    }

/** Asks people, or takes what they said. The question is in the log before anybody sees it. */
export async function review(request: GovernedRequest, question: Question): Promise<Reviewed> {
  const digest = actionDigest(question.action)
  const asked = await ask(request, question, digest)
  const approval = { review: asked.review, digest }
  // Spent and recorded before a crash, and the effect is known not to be there: it still stands.
  if (asked.answer?.answer === 'approved') return { type: 'approved', approval }
  const approvalRequest = toRequest(asked, question.action)
  const { answer, decision } = question
  if (answer?.type === 'deny') {
    const by = answer.by ?? { type: 'human', id: 'unknown' }
    const denied = reason('APPROVAL_DENIED', question.made.tool, answer.reason)
    await record(request, asked, { answer: 'denied', reasons: [denied] }, by)
    return { type: 'denied', reason: denied }
  }
  const redeemed = await redeem(request, approvalRequest, decision, answer)
  if (!redeemed) return { type: 'waiting', request: approvalRequest }
  if (!redeemed.ok) {
    const answered = { answer: 'rejected' as const, reasons: [redeemed.reason] }
    await record(request, asked, answered, request.system)
    const rejection = { rejected: redeemed.reason }
    return { type: 'waiting', request: approvalRequest, rejection }
  }
  const approvers = redeemed.approvers.map(({ type, id }): Actor => ({ type, id }))
  const tokens = redeemed.approvers.map(({ jti }) => jti)
  const first = approvers[0] ?? request.system
  await record(request, asked, { answer: 'approved', approvers, tokens }, first)
  return { type: 'approved', approval }
}

/** The standing question about this very action, or a new one. */
async function ask(
  request: GovernedRequest,
  { made, action, decision }: Question,
  digest: Hash,
): Promise<ReviewState> {
  const { state, core } = request
  const known = state.reviews.get(made.id)
  const now = core.clock.now()
  // What was undone needs a new approval: the old one was for the effect that is gone.
  const isAnew = state.calls.get(made.id)?.status === 'undone'
  if (known?.digest === digest && !isAnew && Date.parse(known.expires_at) > now) return known
  const { agent_id, user_id } = state.identity
  const excluded = decision.fourEyes && user_id !== undefined ? [agent_id, user_id] : [agent_id]
  const deadline = state.opened.limits.deadline ?? Number.POSITIVE_INFINITY
  const { id: call, tool, risk, args_hash } = made
  const data = {
    review: `${state.request_id}#${state.seq}`,
    call,
    tool,
    risk,
    args_hash,
    digest,
    policy_hash: request.policyHash,
    quorum: decision.quorum ?? 1,
    excluded,
    expires_at: timestampOf(Math.min(now + core.limits.approvalTtlMs, deadline)),
    reasons: decision.reasons,
  }
  await request.put(args_hash, made.text, { durable: true })
  await request.submit(
    { type: 'review_requested', data: { ...data, review: `${state.request_id}#${state.seq}` } },
    { outcome: 'pending', actor: request.agent, rollback: action.rollback, durable: true },
  )
  return state.reviews.get(call) as ReviewState
}

/** The question as a person gets it. */
export function toRequest(asked: ReviewState, action: Action): ApprovalRequest {
  const { review, digest, expires_at, quorum, excluded } = asked
  return { id: review, digest, action, expires_at, quorum, excluded }
}

/** Undefined: nothing was said yet. Whatever goes wrong is a refusal. */
async function redeem(
  { core }: GovernedRequest,
  approvalRequest: ApprovalRequest,
  { grant }: Decision,
  answer: ApprovalAnswer | undefined,
): Promise<Redemption | undefined> {
  const { approvals } = core
  const tokens = answer?.type === 'approve' ? answer.tokens : []
  if (tokens.length === 0 && grant === undefined) return undefined
  const { tool } = approvalRequest.action
  try {
    const redeemed =
      tokens.length > 0
        ? await approvals?.redeem(tokens, approvalRequest)
        : await approvals?.checkGrant?.(grant ?? '', approvalRequest)
    if (redeemed?.ok === true) return checkApprovers(redeemed, approvalRequest)
    return (
      redeemed ?? { ok: false, reason: reason('APPROVAL_REQUIRED', tool, 'nobody can check it') }
    )
  } catch (error) {
    return { ok: false, reason: reason('APPROVAL_INVALID', tool, messageOf(error)) }
  }
}

/** Whatever the port says: never the acting agent, never fewer people than asked for. */
function checkApprovers(
  redeemed: Redemption & { readonly ok: true },
  { quorum, excluded, action }: ApprovalRequest,
): Redemption {
  const ids = new Set(redeemed.approvers.map(({ id }) => id))
  const self = excluded.find((id) => ids.has(id))
  if (self !== undefined) return { ok: false, reason: reason('APPROVAL_SELF', self) }
  if (ids.size >= quorum) return redeemed
  const detail = `${ids.size} of ${quorum} approvers`
  return { ok: false, reason: reason('APPROVAL_REQUIRED', action.tool, detail) }
}

interface Answer {
  readonly answer: 'approved' | 'denied' | 'rejected'
  readonly approvers?: readonly Actor[]
  readonly tokens?: readonly string[]
  readonly reasons?: readonly Reason[]
}

async function record(
  request: GovernedRequest,
  { review: id, call, digest }: ReviewState,
  answer: Answer,
  actor: Actor,
): Promise<void> {
  const outcome = answer.answer === 'approved' ? 'success' : 'failure'
  const data = { review: id, call, digest, ...answer }
  await request.submit({ type: 'review_answered', data }, { outcome, actor })
}
