import type { ApprovalRequest } from '@skein/governance'
import type { InterruptAnswer } from '@skein/threads'
import { RuntimeError } from '../error.ts'
import type { RuntimeEvent } from '../event.ts'
import type { KernelState, OpenInterrupt } from '../state.ts'
import type { Decision, Inbox } from '../runtime-api.ts'
import {
  createApiContext,
  editThread,
  load,
  type ApiContext,
  type ApiEnvironment,
} from './api-context.ts'
import { approvalGiven, partialApprovals } from './partial-approvals.ts'
import { approvalOf, openForPeople, waitingItems } from './waiting-items.ts'
import { jsonCopy } from '../thread/values.ts'

/** Signs an approval for an authenticated person; answers the token. */
export type SignApproval = (request: ApprovalRequest, by: string) => Promise<string>

/** What waits for people, and their answers. The first answer to each counts. */
export function createInbox(environment: ApiEnvironment, sign: SignApproval): Inbox {
  const context = createApiContext(environment)
  return {
    list: (query) => waitingItems(context, query),
    approve: (decision) => approve(context, decision, sign),
    deny: (decision) =>
      answer(context, decision, 'approval', { type: 'deny', reason: decision.reason }),
    answer: (item, given) => answer(context, item, 'input', given),
  }
}

/** Answers once as many people have approved as have to; until then it goes on waiting. */
async function approve(context: ApiContext, decision: Decision, sign: SignApproval): Promise<void> {
  const { threadId, interruptId, by, reason } = decision
  const own = decision.tokens ?? (await signed(context, decision, sign))
  await editThread(context, { threadId, point: 'approve' }, async ({ state }) => {
    const open = findOpen(context, state, interruptId, 'approval')
    const waiting = openForPeople(state).length - 1
    const quorum = approvalOf(open.interrupt.request)?.quorum ?? 1
    const earlier = quorum > 1 ? await partialApprovals(context, threadId, interruptId) : []
    if (earlier.some((approval) => approval.by === by)) throw answered(state.threadId, interruptId)
    const tokens = [...earlier.flatMap((approval) => approval.tokens), ...own]
    if (tokens.length < quorum && own.length > 0) {
      const append = [approvalGiven(context, decision, { by, tokens: own })]
      return { result: undefined, change: { append } }
    }
    const answer: InterruptAnswer = {
      type: 'approve',
      ...(tokens.length > 0 && { token: tokens }),
      ...(reason !== undefined && { reason }),
    }
    const append = [answerEvent(context, decision, answer)]
    const wake = { by: context.clock.now() }
    return { result: undefined, change: { append, head: { waiting }, wake } }
  })
}

/** Asked before it is signed, so that nobody holds a token for what was answered already. */
async function signed(
  context: ApiContext,
  { threadId, interruptId, by }: Decision,
  sign: SignApproval,
): Promise<readonly string[]> {
  const { state } = await load(context, threadId)
  const open = findOpen(context, state, interruptId, 'approval')
  const request = approvalOf(open.interrupt.request)
  if (!request) return []
  if (request.excluded.includes(by))
    throw new RuntimeError(`${by} may not approve ${interruptId}.`, {
      code: 'ANSWER_INVALID',
      hint: 'Policy asks for somebody else.',
    })
  return [await sign(request, by)]
}

interface Item {
  readonly threadId: string
  readonly interruptId: string
  readonly by?: string
}

async function answer(
  context: ApiContext,
  { threadId, interruptId, by }: Item,
  kind: 'approval' | 'input',
  given: InterruptAnswer,
): Promise<void> {
  const kept = jsonCopy(given, {
    subject: `The answer to ${interruptId}`,
    code: 'ANSWER_INVALID',
    maxBytes: context.limits.maxMessageBytes,
  }) as InterruptAnswer // a copy of one
  await editThread(context, { threadId, point: 'answer_interrupt' }, ({ state }) => {
    findOpen(context, state, interruptId, kind)
    const append = [answerEvent(context, { interruptId, ...(by !== undefined && { by }) }, kept)]
    const head = { waiting: openForPeople(state).length - 1 }
    const wake = { by: context.clock.now() }
    return { result: undefined, change: { append, head, wake } }
  })
}

function answerEvent(
  context: ApiContext,
  { interruptId, by }: { readonly interruptId: string; readonly by?: string },
  answer: InterruptAnswer,
): RuntimeEvent {
  const answeredBy = by !== undefined && { answeredBy: by }
  return { type: 'interrupt_answered', at: context.at(), interruptId, answer, ...answeredBy }
}

function findOpen(
  { clock }: ApiContext,
  state: KernelState,
  interruptId: string,
  kind: 'approval' | 'input',
): OpenInterrupt {
  const open = state.interrupts.get(interruptId)
  if (!open) throw notFound(state.threadId, interruptId)
  if (open.answer) throw answered(state.threadId, interruptId)
  if (open.interrupt.kind !== kind)
    throw new RuntimeError(`${interruptId} waits for an ${open.interrupt.kind}, not this.`, {
      code: 'ANSWER_INVALID',
      hint: 'Approvals are approved or denied; questions and client tools are answered.',
    })
  if (open.expiresAt !== undefined && Date.parse(open.expiresAt) <= clock.now())
    throw new RuntimeError(`${interruptId} expired at ${open.expiresAt}.`, {
      code: 'REQUEST_EXPIRED',
    })
  return open
}

function answered(threadId: string, interruptId: string): RuntimeError {
  return new RuntimeError(`${interruptId} of thread ${threadId} was answered before.`, {
    code: 'ALREADY_ANSWERED',
    hint: 'The first answer counts, and one of each person.',
  })
}

function notFound(threadId: string, interruptId: string): RuntimeError {
  return new RuntimeError(`Nothing in thread ${threadId} waits by the name ${interruptId}.`, {
    code: 'INTERRUPT_NOT_FOUND',
    hint: 'It may have been settled already; `inbox.list` says what waits.',
  })
}
