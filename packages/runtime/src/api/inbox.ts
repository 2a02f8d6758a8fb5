import { answerQuestion } from './answer-question.ts'
import { createApiContext, type ApiEnvironment } from './api-context.ts'
import { approveChanged } from './approve-changed.ts'
import { approveCall, type SignApproval } from './approve-call.ts'
import { waitingDetail } from './waiting-detail.ts'
import { RuntimeError } from '../contract/error.ts'
import { FOUND_EFFECTS, type Inbox } from '../contract/inbox.ts'

/**
 * Creates the part of the inbox that reads one question and records answers. Only the first answer is accepted.
 * `waitingLists` has the other part, which lists what waits.
 */
export function createInbox(
  environment: ApiEnvironment,
  sign: SignApproval,
): Omit<Inbox, 'list' | 'page'> {
  const context = createApiContext(environment)
  return {
    get: (item) => waitingDetail(context, item),
    approve: (decision) =>
      decision.with === undefined
        ? approveCall(context, decision, sign)
        : approveChanged(context, { ...decision, with: decision.with }, sign),
    deny: (decision) =>
      answerQuestion(context, decision, 'approval', { type: 'deny', reason: decision.reason }),
    settle: (item, found) => {
      if (!FOUND_EFFECTS.includes(found)) return Promise.reject(notFound(item.interruptId, found))
      return answerQuestion(context, item, 'in_doubt', { type: 'result', value: found })
    },
    answer: (item, given) => answerQuestion(context, item, 'input', given),
  }
}

function notFound(interruptId: string, found: unknown): RuntimeError {
  const text = JSON.stringify(found)?.slice(0, 100)
  return new RuntimeError(
    `${text} does not say whether the call of ${interruptId} had its effect.`,
    {
      code: 'ANSWER_INVALID',
      hint: `Answer ${FOUND_EFFECTS.join(', ')}.`,
    },
  )
}
