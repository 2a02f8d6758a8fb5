import type { ApprovalRequest } from '@skein/governance'
import type { InterruptAnswer } from '@skein/threads'
import { load, type ApiContext } from './api-context.ts'
import { approvalOf } from './approval-request.ts'
import { editThread } from './edit-thread.ts'
import { newGrant } from './grants-api.ts'
import { answerEvent, answeredBefore, checkNotExcluded, checkSeenDigest, openQuestion } from './open-question.ts'
import { partialApprovalEvent, partialApprovals } from './partial-approvals.ts'
import { RuntimeError } from '../contract/error.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { ApprovalDecision } from '../contract/inbox.ts'
import type { LoadedThread } from '../state/fold-cache.ts'
import { type OpenInterrupt } from '../state/kernel-state.ts'
import type { Commit } from '../store/commit.ts'
import { waitingCount } from '../state/questions.ts'

/** Signs an approval for an authenticated person; returns the token. */
export type SignApproval = (request: ApprovalRequest, by: string) => Promise<string>

/**
 * Records an approval. The waiting call gets its answer once as many people have approved as the policy requires.
 */
export async function approveCall(
  context: ApiContext,
  decision: ApprovalDecision,
  sign: SignApproval,
): Promise<void> {
  const { threadId, interruptId, by, reason } = decision
  const own = decision.tokens ?? (await signedApproval(context, decision, sign))
  await editThread(context, { threadId, point: 'approve' }, async (thread) => {
    const { state } = thread
    const open = openQuestion(context, state, interruptId, 'approval')
    checkSeenDigest(open, decision)
    const waiting = waitingCount(state, context.clock.now()) - 1
    const quorum = approvalOf(open.interrupt.request)?.quorum ?? 1
    const earlier = quorum > 1 ? await partialApprovals(context, threadId, interruptId) : []
    if (earlier.some((approval) => approval.by === by)) throw answeredBefore(state.threadId, interruptId)
    const tokens = [...earlier.flatMap((approval) => approval.tokens), ...own]
    if (tokens.length < quorum && own.length > 0) {
      const append = [partialApprovalEvent(context, { threadId, interruptId, by }, own)]
      return { result: undefined, change: { append } }
    }
    const answer: InterruptAnswer = {
      type: 'approve',
      token: tokens.length > 0 ? tokens : undefined,
      reason,
    }
    const grant = await grantOf(context, thread, open, decision)
    const append = [...grant.events, answerEvent(context, decision, answer)]
    const wake = { by: context.clock.now() }
    const { audit, blobs } = grant
    return { result: undefined, change: { append, head: { waiting }, wake }, audit, blobs }
  })
}

/** Makes the grant that an approval includes: for the tool and the risk of the call that the person has seen. */
async function grantOf(
  context: ApiContext,
  thread: LoadedThread,
  { interrupt, effectId }: OpenInterrupt,
  { grantForMs: forMs, by, reason }: ApprovalDecision,
): Promise<{
  readonly events: readonly RuntimeEvent[]
  readonly audit?: Commit['audit']
  readonly blobs?: Commit['blobs']
}> {
  if (forMs === undefined) return { events: [] }
  const request = approvalOf(interrupt.request)
  const { tool, risk = 'read_only' } = request?.action ?? {}
  if (!request || tool === undefined || risk === 'read_only' || effectId !== undefined)
    throw notGrantable(interrupt.id, 'it is not a call of a tool that writes')
  if (request.quorum > 1) throw notGrantable(interrupt.id, 'several people have to approve it')
  const { made, ...writes } = await newGrant(context, thread, { tool, forMs, by, reason, risk })
  return { events: [made], ...writes }
}

/** Creates the error for an approval that cannot include a standing grant. */
export function notGrantable(interruptId: string, why: string): RuntimeError {
  return new RuntimeError(`${interruptId} cannot be approved for a time: ${why}.`, {
    code: 'ANSWER_INVALID',
    hint: 'Approve it without `grantForMs`; nothing was recorded.',
  })
}

/**
 * Signs an approval for the person. The waiting call is looked up first, so that no token is created if it already
 * has its answer.
 */
async function signedApproval(
  context: ApiContext,
  decision: ApprovalDecision,
  sign: SignApproval,
): Promise<readonly string[]> {
  const { threadId, interruptId, by } = decision
  const { state } = await load(context, threadId)
  const open = openQuestion(context, state, interruptId, 'approval')
  checkSeenDigest(open, decision)
  const request = approvalOf(open.interrupt.request)
  if (!request) return []
  checkNotExcluded(request, interruptId, by)
  return [await sign(request, by)]
}
