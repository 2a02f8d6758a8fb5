import type { ApprovalAnswer, ApprovalRequest, Redemption } from '../contract/approval.ts'
import { actionDigest, type Actor, type Hash } from '../contract/envelope.ts'
import type { Action, Decision } from '../contract/policy.ts'
import { reason, type Reason, thrownText } from '../contract/reason.ts'
import type { AnswerData } from '../journal/events.ts'
import type { ReviewState } from '../journal/governor-state.ts'
import { timestampOf } from '../journal/line-writer.ts'
import { namesOf } from './call-names.ts'
import type { Candidate } from './candidate.ts'
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
  | { readonly type: 'waiting'; readonly request: ApprovalRequest; readonly rejected?: Reason }

/**
 * Asks people to approve an action, or checks the answer that they gave. The approval request is in the
 * log before anybody sees it, and the answer is in the log before the call runs.
 */
export async function review(request: GovernedRequest, question: Question): Promise<Reviewed> {
  const { action, answer, decision } = question
  const digest = actionDigest(action)
  const pendingReview = await ask(request, question, digest)
  const approval = { review: pendingReview.review, digest }
  // An earlier process recorded the approval and then died. The call may run now, because its tool was never
  // started, a probe found no effect, or the tool is idempotent. The recorded approval counts, because its
  // tokens are spent and could not be used again. If a person found that there was no effect, `round` makes
  // this another action with another approval request.
  if (pendingReview.answer?.answer === 'approved') return { type: 'approved', approval }
  const { review: id, call, expires_at, quorum, excluded } = pendingReview
  const { sent } = question.made
  const asking = { id, digest, action, expires_at, quorum, excluded }
  const approvalRequest = sent ? { ...asking, sent: sent.value } : asking
  const record = async (
    said: Pick<AnswerData, 'answer' | 'approvers' | 'tokens' | 'refused' | 'reasons'>,
    actor: Actor,
  ): Promise<void> => {
    const outcome = said.answer === 'approved' ? 'success' : 'failure'
    const data = { review: id, call, digest, ...said }
    await request.submit({ type: 'review_answered', data }, { outcome, actor })
  }
  if (answer?.type === 'deny') {
    const denial = reason('APPROVAL_DENIED', action.tool, answer.reason)
    const { by = { type: 'human', id: 'unknown' } } = answer
    // Answers are those of people or systems. If the agent itself says no, the governor records that.
    const isAgent = by.type === 'agent' || by.id === request.agent.id
    await record({ answer: 'denied', reasons: [denial] }, isAgent ? request.system : by)
    return { type: 'denied', reason: denial }
  }
  const tokens = answer?.type === 'approve' ? answer.tokens : []
  // A grant is a consent in advance. It does not cover repeating a call that was in doubt.
  const grant = action.round === undefined ? decision.grant : undefined
  if (tokens.length === 0 && grant === undefined) {
    return { type: 'waiting', request: approvalRequest }
  }
  const redemption = await redeem(request, approvalRequest, tokens, grant)
  if (!redemption.ok) {
    const rejection = redemption.reason
    const { refused } = redemption
    await record({ answer: 'rejected', refused, reasons: [rejection] }, request.system)
    return { type: 'waiting', request: approvalRequest, rejected: rejection }
  }
  const approvers = redemption.approvers.map(({ type, id: name }): Actor => ({ type, id: name }))
  const tokenIds = redemption.approvers.map(({ jti }) => jti)
  await record({ answer: 'approved', approvers, tokens: tokenIds }, approvers[0] ?? request.system)
  return { type: 'approved', approval }
}

/**
 * Returns the recorded approval request for exactly this action, if it has not expired; otherwise writes
 * a new approval request to the log.
 */
async function ask(
  request: GovernedRequest,
  { made, action, decision }: Question,
  digest: Hash,
): Promise<ReviewState> {
  const { state, core } = request
  const { call } = made
  const previous = state.reviews.get(call)
  const now = core.clock.now()
  // A call that was undone needs a new approval, because the old one was for the effect that has been
  // undone.
  const isUndone = state.calls.get(call)?.status === 'undone'
  if (previous?.digest === digest && !isUndone && Date.parse(previous.expires_at) > now)
    return previous
  // No agent approves for itself or for a descendant, through which it acts.
  const exclusions = new Set<string>()
  for (let at: GovernedRequest | undefined = request; at; at = at.parent)
    exclusions.add(at.state.identity.agent_id)
  const { user_id } = state.identity
  if (decision.fourEyes && user_id !== undefined) exclusions.add(user_id)
  const deadline = state.opened.limits.deadline ?? Infinity
  const expires_at = timestampOf(Math.min(now + core.limits.approvalTtlMs, deadline))
  await putArguments(request, made)
  const data = {
    // `state.seq` must be read after the `await` above, because other entries may be written meanwhile.
    review: `${state.request_id}#${state.seq}`,
    ...namesOf(made),
    digest,
    policy_hash: request.policyHash,
    quorum: decision.quorum ?? 1,
    excluded: [...exclusions],
    expires_at,
    reasons: decision.reasons,
  }
  await request.submit(
    { type: 'review_requested', data },
    { outcome: 'pending', actor: request.agent, rollback: action.rollback, durable: true },
  )
  return state.reviews.get(call) as ReviewState
}

/** Stores the arguments of a call, and what the model sent if that is something else. */
export async function putArguments(request: GovernedRequest, made: Candidate): Promise<void> {
  const { args_hash, sent_hash, text, sent } = made
  await request.put(args_hash, text, { durable: true })
  if (sent && sent_hash) await request.put(sent_hash, sent.text, { durable: true })
}

/**
 * Checks the tokens or, without tokens, the grant that the policy returned. Every error becomes a
 * refusal.
 */
async function redeem(
  { core: { approvals } }: GovernedRequest,
  asked: ApprovalRequest,
  tokens: readonly string[],
  grant: string | undefined,
): Promise<Redemption> {
  const { quorum, excluded, action } = asked
  const refuse = (...why: Parameters<typeof reason>): Redemption => ({
    ok: false,
    reason: reason(...why),
  })
  try {
    const redemption =
      tokens.length > 0
        ? await approvals?.redeem(tokens, asked)
        : await approvals?.checkGrant?.(grant ?? '', asked)
    if (!redemption) return refuse('APPROVAL_REQUIRED', action.tool, 'no one can check it')
    if (redemption.ok === false) return redemption
    if (redemption.ok !== true) return refuse('APPROVAL_INVALID')
    // These rules are checked here again, in case the `approvals` implementation does not: no excluded
    // person may approve, and there must be enough approvers.
    const ids = new Set(redemption.approvers.map(({ id }) => id))
    const self = excluded.find((id) => ids.has(id))
    const refuseAll = (...why: Parameters<typeof reason>): Redemption => ({
      ok: false,
      reason: reason(...why),
      refused: redemption.approvers.map(({ id, issuer, jti }) => ({
        approver: id,
        issuer,
        jti,
        code: why[0],
        signed: true,
      })),
    })
    if (self !== undefined) return refuseAll('APPROVAL_SELF', self)
    if (ids.size >= quorum) return redemption
    return refuseAll('APPROVAL_REQUIRED', action.tool, `${ids.size} of ${quorum} approvers`)
  } catch (error) {
    return refuse('APPROVAL_INVALID', action.tool, thrownText(error))
  }
}
