import { done, json, operation, type OperationRoute } from './operation.ts'
import { actorOf, seesAllOwners } from './principal.ts'
import { ref } from './schemas.ts'
import {
  answer,
  anything,
  arrayOf,
  between,
  choice,
  eitherOf,
  exactly,
  maxText,
  shape,
} from './shape.ts'
import { FOUND_EFFECTS } from '../contract/runtime-api.ts'

const reason = maxText(10_000)

/** The operations that list waiting calls and record decisions about them. */
export const approvalOperations: readonly OperationRoute[] = [
  operation('listApprovals', {
    tag: 'approvals',
    summary: 'Everything that waits for a person, over all threads and depths.',
    scope: 'threads:read',
    query: { rootId: maxText(200), limit: between(1, 1000) },
    answers: [
      json('What waits, with what is asked.', answer({ waiting: arrayOf(ref('WaitingItem')) })),
    ],
    async run({ runtime, principal, query }) {
      const { tenant, user } = principal
      const owner = seesAllOwners(principal) ? undefined : user
      return { waiting: await runtime.inbox.list({ tenant, owner, ...query }) }
    },
  }),
  operation('decide', {
    tag: 'approvals',
    summary: 'Approves, denies, settles what is in doubt, or answers. The first decision counts.',
    scope: 'approvals:write',
    probe: { body: { type: 'deny', reason: 'Not today.' } },
    body: {
      json: eitherOf(
        shape({
          type: exactly('approve'),
          'reason?': reason,
          'tokens?': arrayOf(maxText(20_000), 10),
        }),
        shape({ type: exactly('deny'), reason }),
        shape({ type: exactly('settle'), found: choice(...FOUND_EFFECTS) }),
        shape({ type: exactly('result'), value: anything }),
        shape({ type: exactly('error'), message: reason }),
      ),
    },
    answers: [done('The decision was recorded.')],
    errors: ['INTERRUPT_NOT_FOUND', 'ALREADY_ANSWERED', 'ANSWER_INVALID', 'THREAD_TERMINATED'],
    async run({ runtime: { inbox }, thread, params, body, principal }) {
      const { interruptId } = params
      const item = { threadId: thread.id, interruptId, by: actorOf(principal) }
      switch (body.type) {
        case 'approve':
          return inbox.approve({ ...item, reason: body.reason, tokens: body.tokens })
        case 'deny':
          return inbox.deny({ ...item, reason: body.reason })
        case 'settle':
          return inbox.settle(item, body.found)
        default:
          return inbox.answer(item, body)
      }
    },
  }),
]
