import { done, json, operation, type OperationRoute } from './operation.ts'
import { actorOf, seesAllOwners } from './principal.ts'
import { decisionReason, grantTime, ref } from './schemas.ts'
import { answer, between, arrayOf, choice, shape, maxText } from '@skein/base/shape'

/** The operations on grants: a person allows a thread to use a tool without asking again, until a given time. */
export const grantOperations: readonly OperationRoute[] = [
  operation('listAllGrants', {
    tag: 'approvals',
    summary: 'Who has allowed which tool in which thread until when: the grants that hold now.',
    scope: 'threads:read',
    query: { limit: between(1, 1000) },
    answers: [
      json(
        'The grants, those that end first at the front.',
        answer({ grants: arrayOf(ref('ThreadGrant')) }),
      ),
    ],
    async run({ runtime, principal, query }) {
      const { tenant, user } = principal
      const owner = seesAllOwners(principal) ? undefined : user
      return { grants: await runtime.threads.grants.all({ tenant, owner, ...query }) }
    },
  }),
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
        'reason?': decisionReason,
      }),
    },
    answers: [json('The grant.', ref('Grant'), 201)],
    errors: ['ANSWER_INVALID', 'THREAD_TERMINATED'],
    run: ({ runtime, thread, body, principal }) =>
      runtime.threads.grants.make(thread.id, { ...body, by: actorOf(principal) }),
  }),
  operation('revokeGrant', {
    tag: 'approvals',
    summary: 'Ends a grant now. Calls that have started continue.',
    scope: 'approvals:write',
    answers: [done('The grant has ended.')],
    errors: ['GRANT_NOT_FOUND', 'THREAD_TERMINATED'],
    run: ({ runtime, thread, params, principal }) =>
      runtime.threads.grants.revoke(thread.id, params.grantId, { by: actorOf(principal) }),
  }),
]
