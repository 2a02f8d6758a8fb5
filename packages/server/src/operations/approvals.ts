import { FOUND_EFFECTS } from '@skein/runtime'
import { done, json, operation, type OperationRoute } from './operation.ts'
import { actorOf, seesAllOwners } from './principal.ts'
import { ref, decisionReason, grantTime } from './schemas.ts'
import {
  answer,
  anything,
  arrayOf,
  between,
  choice,
  eitherOf,
  exactly,
  maxText,
  object,
  shape,
  string,
} from '@skein/base/shape'

/** The operations that list waiting calls and record decisions about them. */
export const approvalOperations: readonly OperationRoute[] = [
  operation('listApprovals', {
    tag: 'approvals',
    summary:
      'What waits for a person, over all threads and depths, the oldest first. `threadIdPart` and `interruptIdPart` are ids, or their beginnings or ends. A page may have fewer items than `limit`; the last page has no `nextCursor`.',
    scope: 'threads:read',
    query: {
      rootId: maxText(200),
      threadId: maxText(200),
      threadIdPart: maxText(200),
      interruptIdPart: maxText(200),
      agent: maxText(200),
      owner: maxText(200),
      kind: choice('approval', 'input', 'in_doubt', 'variables'),
      limit: between(1, 1000),
      cursor: maxText(2000),
    },
    answers: [
      json(
        'What waits, with what is asked.',
        answer({ waiting: arrayOf(ref('WaitingItem')), 'nextCursor?': string }),
      ),
    ],
    run({ runtime, principal, query }) {
      const { tenant, user } = principal
      const owner = seesAllOwners(principal) ? query.owner : user
      return runtime.inbox.page({ ...query, tenant, owner })
    },
  }),
  operation('getApproval', {
    tag: 'approvals',
    summary:
      'One request for a decision, waiting or decided: what would run, its risk and undo, the evidence, who decided and when.',
    scope: 'threads:read',
    answers: [json('The request.', ref('WaitingDetail'))],
    errors: ['INTERRUPT_NOT_FOUND'],
    run: ({ runtime, thread, params }) =>
      runtime.inbox.get({ threadId: thread.id, interruptId: params.interruptId }),
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
          'reason?': decisionReason,
          'tokens?': arrayOf(maxText(20_000), 10),
          'with?': object,
          'digest?': maxText(200),
          'grantForMs?': grantTime,
        }),
        shape({ type: exactly('deny'), reason: decisionReason }),
        shape({ type: exactly('settle'), found: choice(...FOUND_EFFECTS) }),
        shape({ type: exactly('result'), value: anything }),
        shape({ type: exactly('error'), message: decisionReason }),
      ),
    },
    answers: [done('The decision was recorded.')],
    errors: ['INTERRUPT_NOT_FOUND', 'ALREADY_ANSWERED', 'ANSWER_INVALID', 'THREAD_TERMINATED'],
    async run({ runtime: { inbox }, thread, params, body, principal }) {
      const { interruptId } = params
      const item = { threadId: thread.id, interruptId, by: actorOf(principal) }
      switch (body.type) {
        case 'approve': {
          const { type: _, ...given } = body
          return inbox.approve({ ...item, ...given })
        }
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
