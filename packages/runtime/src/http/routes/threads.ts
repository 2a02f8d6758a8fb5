import type { CreateThread } from '../../runtime-api.ts'
import type { ThreadLifecycle, ThreadQuery } from '../../store/store.ts'
import { HttpError } from '../http-error.ts'
import { jsonResponse, noContent } from '../json-response.ts'
import { hasScope, seesAllOwners, type Principal } from '../principal.ts'
import type { Call, Route } from '../route.ts'
import { answer, limit, listOf, offset, ref, shape, text } from '../schemas.ts'
import { toSendMessage } from '../send-message.ts'

export const threadRoutes: readonly Route[] = [
  {
    id: 'listThreads',
    method: 'GET',
    path: '/threads',
    tag: 'threads',
    summary: 'Threads that you may see, the latest first.',
    scope: 'threads:read',
    addresses: 'nothing',
    query: {
      agent: text(200),
      owner: text(200),
      lifecycle: {
        type: 'string',
        enum: ['idle', 'running', 'waiting', 'stopped', 'failed', 'terminated', 'erased'],
      },
      parentId: text(200),
      rootId: text(200),
      roots: { type: 'boolean' },
      waiting: { type: 'boolean' },
      search: text(200),
      tag: text(100),
      clientId: text(200),
      sort: { type: 'string', enum: ['activity', 'created', 'oldest'] },
      limit: limit(1000),
      offset,
    },
    answers: [
      {
        status: 200,
        description: 'A page of threads.',
        schema: answer({ threads: listOf(ref('Thread')), 'nextOffset?': { type: 'integer' } }),
      },
    ],
    handle: listThreads,
  },
  {
    id: 'createThread',
    method: 'POST',
    path: '/threads',
    tag: 'threads',
    summary: 'Creates a thread of an agent, with a first message if you give one.',
    scope: 'threads:write',
    addresses: 'nothing',
    body: { json: ref('CreateThread') },
    answers: [{ status: 201, description: 'The new thread.', schema: ref('Thread') }],
    errors: ['AGENT_NOT_FOUND', 'CLIENT_ID_TAKEN', 'ENV_INVALID', 'VALUE_INVALID'],
    async handle(call) {
      const { runtime, principal, body } = call
      const thread = await runtime.threads.create(toCreateThread(body as unknown, principal))
      return jsonResponse(thread, {
        status: 201,
        headers: { location: `${call.services.prefix}/threads/${encodeURIComponent(thread.id)}` },
      })
    },
  },
  {
    id: 'getThread',
    method: 'GET',
    path: '/threads/{threadId}',
    tag: 'threads',
    summary: 'One thread.',
    scope: 'threads:read',
    addresses: 'thread',
    probe: {},
    answers: [{ status: 200, description: 'The thread.', schema: ref('Thread') }],
    handle: ({ thread }) => jsonResponse(thread),
  },
  {
    id: 'updateThread',
    method: 'PATCH',
    path: '/threads/{threadId}',
    tag: 'threads',
    summary: 'Changes the title or the tags.',
    scope: 'threads:write',
    addresses: 'thread',
    probe: { body: { title: 'Renamed' } },
    body: {
      json: shape({
        'title?': text(256),
        'tags?': { type: 'array', items: text(100), maxItems: 50 },
      }),
    },
    answers: [{ status: 200, description: 'The thread.', schema: ref('Thread') }],
    async handle({ runtime, thread, body }) {
      const change = body as { title?: string; tags?: string[] } // checked by the schema
      return jsonResponse(await runtime.threads.update(thread.id, change))
    },
  },
  {
    id: 'deleteThread',
    method: 'DELETE',
    path: '/threads/{threadId}',
    tag: 'threads',
    summary: 'Terminates and removes a thread and all its descendants.',
    scope: 'threads:write',
    addresses: 'thread',
    probe: {},
    answers: [{ status: 204, description: 'It is gone.' }],
    async handle({ runtime, thread }) {
      await runtime.threads.remove(thread.id)
      return noContent()
    },
  },
  {
    id: 'listSubagents',
    method: 'GET',
    path: '/threads/{threadId}/subagents',
    tag: 'threads',
    summary: 'Children as their parent knows them.',
    scope: 'threads:read',
    addresses: 'thread',
    probe: {},
    answers: [
      {
        status: 200,
        description: 'The children, the oldest first.',
        schema: answer({ subagents: listOf(ref('Subagent')) }),
      },
    ],
    handle: async ({ runtime, thread }) =>
      jsonResponse({ subagents: await runtime.threads.children(thread.id) }),
  },
]

const DEFAULT_LIMIT = 50

async function listThreads({ runtime, principal, query }: Call): Promise<Response> {
  const { limit: size = DEFAULT_LIMIT, offset: from = 0, clientId } = query
  if (typeof clientId === 'string') return byClientId({ runtime, principal }, clientId)
  const wanted = { ...toThreadQuery(query, principal), limit: Number(size), offset: Number(from) }
  const threads = await runtime.threads.list(wanted)
  const isFull = threads.length === wanted.limit
  return jsonResponse({ threads, ...(isFull && { nextOffset: wanted.offset + wanted.limit }) })
}

async function byClientId(
  { runtime, principal }: Pick<Call, 'runtime' | 'principal'>,
  clientId: string,
): Promise<Response> {
  const thread = await runtime.threads.byClientId(principal.tenant, clientId)
  const isSeen = thread && (seesAllOwners(principal) || thread.owner === principal.user)
  return jsonResponse({ threads: isSeen ? [thread] : [] })
}

function toThreadQuery(query: Call['query'], principal: Principal): ThreadQuery {
  const { agent, owner, lifecycle, parentId, rootId, roots, waiting, search, tag, sort } = query
  const { tenant, user } = principal
  return {
    tenant,
    ...(seesAllOwners(principal)
      ? owner !== undefined && { owner: String(owner) }
      : user !== undefined && { owner: user }),
    ...(agent !== undefined && { agent: String(agent) }),
    ...(lifecycle !== undefined && { lifecycle: lifecycle as ThreadLifecycle }), // checked by the schema
    ...(parentId !== undefined && { parentId: String(parentId) }),
    ...(roots === true && { parentId: null }),
    ...(rootId !== undefined && { rootId: String(rootId) }),
    ...(waiting !== undefined && { isWaiting: waiting === true }),
    ...(search !== undefined && { search: String(search) }),
    ...(tag !== undefined && { tag: String(tag) }),
    ...(sort !== undefined && { sort: sort as NonNullable<ThreadQuery['sort']> }), // checked by the schema
  }
}

/** The tenant is always the client's, and so is the owner where the client is a person. */
function toCreateThread(body: unknown, principal: Principal): CreateThread {
  const { owner, message, ...rest } = body as CreateThread // checked by the schema
  if ((rest.env || rest.secrets) && !hasScope(principal, 'env:write'))
    throw new HttpError('Variables can only be set with the scope env:write.', {
      code: 'SCOPE_MISSING',
    })
  const owned = seesAllOwners(principal) ? (owner ?? principal.user) : principal.user
  return {
    ...rest,
    tenant: principal.tenant,
    ...(owned !== undefined && { owner: owned }),
    ...(message !== undefined && { message: toSendMessage(message, principal) }),
  }
}
