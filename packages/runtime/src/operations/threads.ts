import type { CreateThread } from '../runtime-api.ts'
import type { ThreadLifecycle, ThreadQuery } from '../store/store.ts'
import { HttpError } from './http-error.ts'
import { type Call, jsonResponse, noContent, type Route } from './operation.ts'
import { hasScope, type Principal, seesAllOwners } from './principal.ts'
import { answer, limit, listOf, offset, ref, shape, text } from './schemas.ts'
import { toSendMessage } from './messages.ts'

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

const LINES = 'application/jsonl'

export const transferRoutes: readonly Route[] = [
  {
    id: 'exportThread',
    method: 'GET',
    path: '/threads/{threadId}/export',
    tag: 'transfer',
    summary: 'The thread as JSON lines that can be imported, or as a ThreadProtocol document.',
    scope: 'threads:read',
    addresses: 'thread',
    probe: {},
    query: { format: { type: 'string', enum: ['jsonl', 'thread'] } },
    answers: [
      { status: 200, description: 'The log.', mediaType: LINES, schema: { type: 'string' } },
      {
        status: 200,
        description: 'The ThreadProtocol document.',
        schema: { type: 'object', required: ['version', 'thread_id', 'turns'] },
      },
    ],
    async handle({ runtime, thread, query, request }) {
      const wantsJson = /^application\/json\b/.test(request.headers.get('accept') ?? '')
      const { format = wantsJson ? 'thread' : 'jsonl' } = query
      if (format === 'thread') return jsonResponse(await runtime.threads.document(thread.id))
      return new Response(await runtime.threads.export(thread.id), {
        headers: {
          'content-type': `${LINES}; charset=utf-8`,
          'content-disposition': `attachment; filename="thread.jsonl"`,
          vary: 'accept',
        },
      })
    },
  },
  {
    id: 'importThread',
    method: 'POST',
    path: '/threads/import',
    tag: 'transfer',
    summary: 'A new thread from exported JSON lines.',
    // A log can hold anything, decisions of other people included; that is not for everybody to write.
    scope: 'admin',
    addresses: 'nothing',
    body: { bytes: 'lines' },
    answers: [{ status: 201, description: 'The new thread.', schema: ref('Thread') }],
    async handle({ runtime, bytes, principal }) {
      const { tenant, user } = principal
      const owner = user === undefined ? {} : { owner: user }
      const thread = await runtime.threads.import(decode(bytes), { tenant, ...owner })
      return jsonResponse(thread, { status: 201 })
    },
  },
]

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new HttpError('The body is not UTF-8.', { code: 'BODY_INVALID', cause })
  }
}

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
