import { currentView, viewHtml } from '../view/thread-view.ts'
import type { CreateThread, ThreadInfo } from '../contract/runtime-api.ts'
import type { ThreadQuery } from '../store/store.ts'
import { threadView } from '../view/index.ts'
import { publicEvent, withoutLongResults } from '../view/public-event.ts'
import type { Services } from '../http/services.ts'
import { HttpError } from './http-error.ts'
import { toSendMessage } from './messages.ts'
import {
  done,
  json,
  jsonResponse,
  operation,
  raw,
  type OperationCall,
  type OperationRoute,
} from './operation.ts'
import { byClientId, hasScope, seesAllOwners, type Principal } from './principal.ts'
import { lifecycle, ref, tags, type ThreadBody } from './schemas.ts'
import { answer, between, boolean, integer, arrayOf, choice, shape, maxText } from './shape.ts'

const MAX_OFFSET = 10_000_000
const DEFAULT_LIMIT = 50

const listQuery = {
  agent: maxText(200),
  owner: maxText(200),
  lifecycle,
  parentId: maxText(200),
  rootId: maxText(200),
  roots: boolean,
  waiting: boolean,
  search: maxText(200),
  tag: maxText(100),
  forkedFrom: maxText(200),
  clientId: maxText(200),
  sort: choice('activity', 'created', 'oldest'),
  limit: between(1, 1000),
  offset: between(0, MAX_OFFSET),
}

/** The operations that find, create, read and remove threads. */
export const threadOperations: readonly OperationRoute[] = [
  operation('listThreads', {
    tag: 'threads',
    summary: 'Threads that you may see, the latest first.',
    scope: 'threads:read',
    query: listQuery,
    answers: [
      json(
        'A page of threads.',
        answer({ threads: arrayOf(ref('Thread')), 'nextOffset?': integer }),
      ),
    ],
    async run({ runtime, principal, query }) {
      const { limit = DEFAULT_LIMIT, offset = 0, clientId } = query
      if (clientId !== undefined) {
        const thread = await byClientId(runtime, principal, clientId)
        return { threads: thread ? [thread] : [] }
      }
      const threads = await runtime.threads.list({
        ...threadQuery(query, principal),
        limit,
        offset,
      })
      return { threads, nextOffset: threads.length === limit ? offset + limit : undefined }
    },
  }),
  operation('createThread', {
    tag: 'threads',
    summary: 'Creates a thread of an agent, with a first message if you give one.',
    scope: 'threads:write',
    body: { json: ref('CreateThread') },
    answers: [json('The new thread.', ref('Thread'), 201)],
    errors: [
      'AGENT_NOT_FOUND',
      'CLIENT_ID_TAKEN',
      'ENV_INVALID',
      'VALUE_INVALID',
      'SPENDING_LIMIT',
      'PLAYGROUND_OFF',
    ],
    async run({ runtime, principal, body, services }) {
      const thread = await runtime.threads.create(newThread(body, principal, services))
      const location = `${services.prefix}/threads/${encodeURIComponent(thread.id)}`
      return jsonResponse(thread, { status: 201, headers: { location } })
    },
  }),
  operation('getThread', {
    tag: 'threads',
    summary: 'One thread.',
    scope: 'threads:read',
    answers: [json('The thread.', ref('Thread'))],
    run: ({ thread }) => thread,
  }),
  operation('getThreadView', {
    tag: 'threads',
    summary:
      'The thread as a person is shown it: messages, calls, what waits, children, usage. `upTo` is the number of an event: the thread as it was then.',
    scope: 'threads:read',
    query: { upTo: between(0, Number.MAX_SAFE_INTEGER) },
    answers: [json('The view.', ref('ThreadView'))],
    async run({ runtime, thread, query: { upTo } }) {
      if (upTo === undefined) return { ...(await currentView(runtime, thread)), tree: thread.tree }
      return threadView(await runtime.threads.events(thread.id, { limit: upTo }))
    },
  }),
  operation('updateThread', {
    tag: 'threads',
    summary: 'Changes the title or the tags.',
    scope: 'threads:write',
    probe: { body: { title: 'Renamed' } },
    body: { json: shape({ 'title?': maxText(256), 'tags?': tags }) },
    answers: [json('The thread.', ref('Thread'))],
    run: ({ runtime, thread, body }) => runtime.threads.update(thread.id, body),
  }),
  operation('deleteThread', {
    tag: 'threads',
    summary: 'Terminates and removes a thread and all its descendants.',
    scope: 'threads:write',
    answers: [done('The thread is removed.')],
    run: ({ runtime, thread }) => runtime.threads.remove(thread.id),
  }),
  operation('listSubagents', {
    tag: 'threads',
    summary:
      'All children, of every kind, as their parent knows them and with their own threads: state, tokens, cost, times.',
    scope: 'threads:read',
    answers: [
      json('The children, the oldest first.', answer({ subagents: arrayOf(ref('Subagent')) })),
    ],
    async run({ runtime: { threads }, thread: { id: parentId, tenant } }) {
      const children = await threads.children(parentId, { includesEnded: true })
      const known = new Map<string, ThreadInfo>()
      const limit = 1000
      for (let offset = 0, isFull = true; isFull; offset += limit) {
        const page = await threads.list({ tenant, parentId, sort: 'oldest', limit, offset })
        for (const thread of page) known.set(thread.id, thread)
        isFull = page.length === limit
      }
      return {
        subagents: children.map(({ createdAt, ...child }) => ({
          ...child,
          // Standard Agents counts in microseconds.
          createdAt: createdAt === undefined ? undefined : new Date(createdAt / 1000).toISOString(),
          thread: known.get(child.reference) ?? null,
        })),
      }
    },
  }),
]

/** Converts the query of a list. Clients without `threads:all` only see the threads of their own user. */
function threadQuery(
  query: OperationCall<'listThreads', typeof listQuery, unknown>['query'],
  principal: Principal,
): ThreadQuery {
  const { agent, owner, lifecycle: wanted, rootId, search, tag, forkedFrom, sort } = query
  return {
    tenant: principal.tenant,
    owner: seesAllOwners(principal) ? owner : principal.user,
    agent,
    lifecycle: wanted,
    parentId: query.roots ? null : query.parentId,
    rootId,
    isWaiting: query.waiting,
    search,
    tag,
    forkedFrom,
    sort,
  }
}

/**
 * Converts a client's request for a thread. The tenant is the client's, and so is the owner if the client has
 * a user.
 */
function newThread(
  { owner, message, ...rest }: ThreadBody,
  principal: Principal,
  services: Services,
): CreateThread {
  if ((rest.env || rest.secrets) && !hasScope(principal, 'env:write'))
    throw new HttpError('Variables can only be set with the scope env:write.', {
      code: 'SCOPE_MISSING',
    })
  return {
    ...rest,
    tenant: principal.tenant,
    owner: (seesAllOwners(principal) ? owner : undefined) ?? principal.user,
    message: message === undefined ? undefined : toSendMessage(message, principal, services),
  }
}

const LINES = 'application/jsonl'

/** The operations that read, export and import the logs of threads. */
export const logOperations: readonly OperationRoute[] = [
  operation('listEvents', {
    tag: 'events',
    summary:
      'The log, in order. With `maxResultChars`, longer results of tools are cut to their beginning, and such an event has `isCut`; ask for it alone to get it whole.',
    scope: 'threads:read',
    query: {
      after: between(0, Number.MAX_SAFE_INTEGER),
      limit: between(1, 1000),
      maxResultChars: between(100, 10_000_000),
    },
    answers: [json('Events with their numbers.', answer({ events: arrayOf(ref('StoredEvent')) }))],
    async run({ runtime, thread, query: { after = 0, limit = 200, maxResultChars } }) {
      const events = await runtime.threads.events(thread.id, { after, limit })
      return {
        events: events.map(({ seq, event }) => {
          const cut = maxResultChars && withoutLongResults(event, maxResultChars)
          return cut
            ? { seq, event: publicEvent(cut), isCut: true }
            : { seq, event: publicEvent(event) }
        }),
      }
    },
  }),
  operation('exportThread', {
    tag: 'transfer',
    summary:
      'The thread as JSON lines that can be imported, as a ThreadProtocol document, or as one HTML file.',
    scope: 'threads:read',
    query: { format: choice('jsonl', 'thread', 'html') },
    answers: [
      raw('The log.', LINES, { type: 'string' }),
      raw('The ThreadProtocol document.', 'application/json', {
        type: 'object',
        required: ['version', 'thread_id', 'turns'],
      }),
      raw('The conversation to read, without scripts.', 'text/html', { type: 'string' }),
    ],
    async run({ runtime, thread, query, request }) {
      const wantsJson = /^application\/json\b/.test(request.headers.get('accept') ?? '')
      const { format = wantsJson ? 'thread' : 'jsonl' } = query
      if (format === 'thread') return jsonResponse(await runtime.threads.document(thread.id))
      if (format === 'html') {
        const { title, firstWords } = thread
        const view = threadView(await runtime.threads.events(thread.id))
        return new Response(viewHtml(view, title ?? firstWords ?? thread.id), {
          headers: {
            'content-type': 'text/html; charset=utf-8',
            'content-disposition': `attachment; filename="thread.html"`,
          },
        })
      }
      return new Response(await runtime.threads.export(thread.id), {
        headers: {
          'content-type': `${LINES}; charset=utf-8`,
          'content-disposition': `attachment; filename="thread.jsonl"`,
          vary: 'accept',
        },
      })
    },
  }),
  operation('importThread', {
    tag: 'transfer',
    summary: 'A new thread from exported JSON lines.',
    // An imported log can contain anything, even decisions of other people, so importing requires `admin`.
    scope: 'admin',
    body: { bytes: 'lines' },
    answers: [json('The new thread.', ref('Thread'), 201)],
    run({ runtime, bytes, principal: { tenant, user } }) {
      let lines: string
      try {
        lines = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
      } catch (cause) {
        throw new HttpError('The body is not UTF-8.', { code: 'BODY_INVALID', cause })
      }
      return runtime.threads.import(lines, { tenant, owner: user })
    },
  }),
  operation('listLogs', {
    tag: 'logs',
    summary: 'Requests to models.',
    scope: 'logs:read',
    answers: [
      json('One entry per request, the oldest first.', answer({ logs: arrayOf(ref('ModelLog')) })),
    ],
    run: async ({ runtime, thread }) => ({ logs: await runtime.threads.logs(thread.id) }),
  }),
  operation('getLog', {
    tag: 'logs',
    summary: 'One request as it was sent. Secrets are never in it.',
    scope: 'logs:read',
    answers: [json('The request.', ref('ModelLogDetail'))],
    errors: ['LOG_NOT_FOUND'],
    run: ({ runtime, thread, params }) => runtime.threads.log(thread.id, params.logId),
  }),
  operation('getCost', {
    tag: 'logs',
    summary: 'Tokens and cost of a thread and its descendants.',
    scope: 'threads:read',
    answers: [json('By model and by thread.', ref('Cost'))],
    run: ({ runtime, thread }) => runtime.threads.cost(thread.id),
  }),
  operation('getAudit', {
    tag: 'logs',
    summary: 'The audit log with a signed checkpoint.',
    scope: 'logs:read',
    answers: [json('Lines to verify.', ref('Audit'))],
    run: ({ runtime, thread }) => runtime.threads.audit(thread.id),
  }),
]
