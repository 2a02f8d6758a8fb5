import type { JsonSchema, JsonValue } from '@skein/base'
import { type Call, jsonResponse, noContent, type Route, type ThreadCall } from './operation.ts'
import { actorOf, seesAllOwners } from './principal.ts'
import { answer, limit, listOf, ref, shape, text } from './schemas.ts'

const reason = text(10_000)
const is = (name: string): JsonSchema => ({ const: name })

export const approvalRoutes: readonly Route[] = [
  {
    id: 'listApprovals',
    method: 'GET',
    path: '/approvals',
    tag: 'approvals',
    summary: 'Everything that waits for a person, over all threads and depths.',
    scope: 'threads:read',
    addresses: 'nothing',
    query: { rootId: text(200), limit: limit(1000) },
    answers: [
      {
        status: 200,
        description: 'What waits, with what is asked.',
        schema: answer({ waiting: listOf(ref('WaitingItem')) }),
      },
    ],
    handle: listApprovals,
  },
  {
    id: 'decide',
    method: 'POST',
    path: '/approvals/{threadId}/{interruptId}',
    tag: 'approvals',
    summary: 'Approves, denies or answers. The first decision counts.',
    scope: 'approvals:write',
    addresses: 'thread',
    probe: { body: { type: 'deny', reason: 'Not today.' } },
    body: {
      json: {
        anyOf: [
          shape({
            type: is('approve'),
            'reason?': reason,
            'tokens?': { type: 'array', items: text(20_000), maxItems: 10 },
          }),
          shape({ type: is('deny'), reason }),
          shape({ type: is('result'), value: {} }),
          shape({ type: is('error'), message: reason }),
        ],
      },
    },
    answers: [{ status: 204, description: 'It is decided.' }],
    errors: ['INTERRUPT_NOT_FOUND', 'ALREADY_ANSWERED', 'ANSWER_INVALID', 'THREAD_TERMINATED'],
    handle: decide,
  },
]

async function listApprovals({ runtime, principal, query }: Call): Promise<Response> {
  const { rootId, limit: size } = query as { rootId?: string; limit?: number } // checked by the schema
  const { tenant, user } = principal
  const waiting = await runtime.inbox.list({
    tenant,
    ...(!seesAllOwners(principal) && user !== undefined && { owner: user }),
    ...(rootId !== undefined && { rootId }),
    ...(size !== undefined && { limit: size }),
  })
  return jsonResponse({ waiting })
}

type DecisionBody =
  | { readonly type: 'approve'; readonly reason?: string; readonly tokens?: readonly string[] }
  | { readonly type: 'deny'; readonly reason: string }
  | { readonly type: 'result'; readonly value: JsonValue }
  | { readonly type: 'error'; readonly message: string }

async function decide({ runtime, thread, params, body, principal }: ThreadCall): Promise<Response> {
  const decision = body as unknown as DecisionBody // checked by the schema
  const item = { threadId: thread.id, interruptId: params['interruptId']!, by: actorOf(principal) }
  switch (decision.type) {
    case 'approve': {
      const { type: _, ...rest } = decision
      await runtime.inbox.approve({ ...item, ...rest })
      break
    }
    case 'deny':
      await runtime.inbox.deny({ ...item, reason: decision.reason })
      break
    default:
      await runtime.inbox.answer(item, decision)
  }
  return noContent()
}
