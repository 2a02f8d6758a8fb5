import { FOUND_EFFECTS } from '../contract/runtime-api.ts'
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
  object,
  shape,
} from './shape.ts'

const reason = maxText(10_000)
/** How long a standing grant may hold. */
const grantTime = between(1000, 24 * 3_600_000)

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
          'reason?': reason,
          'tokens?': arrayOf(maxText(20_000), 10),
          'with?': object,
          'digest?': maxText(200),
          'grantForMs?': grantTime,
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

/** The operations on the standing grants of a thread: consents to a tool until a time. */
export const grantOperations: readonly OperationRoute[] = [
  operation('listGrants', {
    tag: 'approvals',
    summary: 'Who has allowed which tool in this thread until when, also grants that have ended.',
    scope: 'threads:read',
    answers: [json('The grants, the latest first.', answer({ grants: arrayOf(ref('Grant')) }))],
    run: async ({ runtime, thread }) => ({ grants: await runtime.threads.grants.list(thread.id) }),
  }),
  operation('makeGrant', {
    tag: 'approvals',
    summary:
      'Allows a tool in this thread for a time, a day at most. Denials, four eyes and quorums stay as they are.',
    scope: 'approvals:write',
    probe: { body: { tool: 'refund', forMs: 3_600_000 } },
    body: {
      json: shape({
        tool: maxText(200),
        forMs: grantTime,
        'risk?': choice('write_low_risk', 'write_high_risk'),
        'reason?': reason,
      }),
    },
    answers: [json('The grant.', ref('Grant'), 201)],
    errors: ['ANSWER_INVALID', 'THREAD_TERMINATED'],
    run: ({ runtime, thread, body, principal }) =>
      runtime.threads.grants.make(thread.id, { ...body, by: actorOf(principal) }),
  }),
  operation('revokeGrant', {
    tag: 'approvals',
    summary: 'Ends a grant now. Calls that have started go on.',
    scope: 'approvals:write',
    answers: [done('The grant has ended.')],
    errors: ['GRANT_NOT_FOUND', 'THREAD_TERMINATED'],
    run: ({ runtime, thread, params, principal }) =>
      runtime.threads.grants.revoke(thread.id, params.grantId, { by: actorOf(principal) }),
  }),
]
