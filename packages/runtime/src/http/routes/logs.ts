import { jsonResponse } from '../json-response.ts'
import type { Route } from '../route.ts'
import { answer, listOf, ref } from '../schemas.ts'

export const logRoutes: readonly Route[] = [
  {
    id: 'listLogs',
    method: 'GET',
    path: '/threads/{threadId}/logs',
    tag: 'logs',
    summary: 'Requests to models.',
    scope: 'logs:read',
    addresses: 'thread',
    probe: {},
    answers: [
      {
        status: 200,
        description: 'One entry per request, the oldest first.',
        schema: answer({ logs: listOf(ref('ModelLog')) }),
      },
    ],
    handle: async ({ runtime, thread }) =>
      jsonResponse({ logs: await runtime.threads.logs(thread.id) }),
  },
  {
    id: 'getLog',
    method: 'GET',
    path: '/threads/{threadId}/logs/{logId}',
    tag: 'logs',
    summary: 'One request as it was sent. Secrets are never in it.',
    scope: 'logs:read',
    addresses: 'thread',
    probe: {},
    answers: [{ status: 200, description: 'The request.', schema: ref('ModelLogDetail') }],
    errors: ['LOG_NOT_FOUND'],
    handle: async ({ runtime, thread, params }) =>
      jsonResponse(await runtime.threads.log(thread.id, params['logId']!)),
  },
  {
    id: 'getCost',
    method: 'GET',
    path: '/threads/{threadId}/cost',
    tag: 'logs',
    summary: 'Tokens and cost of a thread and its descendants.',
    scope: 'threads:read',
    addresses: 'thread',
    probe: {},
    answers: [{ status: 200, description: 'By model and by thread.', schema: ref('Cost') }],
    handle: async ({ runtime, thread }) => jsonResponse(await runtime.threads.cost(thread.id)),
  },
  {
    id: 'getAudit',
    method: 'GET',
    path: '/threads/{threadId}/audit',
    tag: 'logs',
    summary: 'The audit log with a signed checkpoint.',
    scope: 'logs:read',
    addresses: 'thread',
    probe: {},
    answers: [{ status: 200, description: 'Lines to verify.', schema: ref('Audit') }],
    handle: async ({ runtime, thread }) => jsonResponse(await runtime.threads.audit(thread.id)),
  },
]
