import { threadView } from '@skein/runtime/view'
import {
  type CreateThread,
  type ThreadInfo,
  type ListPlace,
  type ThreadQuery,
  placeOf,
} from '@skein/runtime'
import { decodeCursor, encodeCursor } from '@skein/runtime/serving'
import type { Services } from '../http/services.ts'
import { HttpError, invalidInput } from './http-error.ts'
import { toSendMessage } from './messages.ts'
import {
  done,
  json,
  jsonResponse,
  operation,
  type OperationCall,
  type OperationRoute,
} from './operation.ts'
import { byClientId, hasScope, seesAllOwners, type Principal } from './principal.ts'
import { lifecycle, ref, tags, type ThreadBody } from './schemas.ts'
import {
  answer,
  between,
  boolean,
  integer,
  arrayOf,
  choice,
  shape,
  maxText,
  string,
} from '@skein/base/shape'
import { currentView } from './current-view.ts'

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
  idPart: maxText(200),
  tag: maxText(100),
  tool: maxText(200),
  forkedFrom: maxText(200),
  clientId: maxText(200),
  sort: choice('activity', 'created', 'oldest'),
  limit: between(1, 1000),
  offset: between(0, MAX_OFFSET),
  cursor: maxText(1000),
}

/** The operations that find, create, read and remove threads. */
export const threadOperations: readonly OperationRoute[] = [
  operation('listThreads', {
    tag: 'threads',
    summary:
      'Threads that you may see, the latest first. `idPart` is an id, or its beginning or end. Continue with `nextCursor`: a page then costs the same wherever it is, and no thread that changes meanwhile is listed twice.',
    scope: 'threads:read',
    query: listQuery,
    answers: [
      json(
        'A page of threads.',
        answer({ threads: arrayOf(ref('Thread')), 'nextOffset?': integer, 'nextCursor?': string }),
      ),
    ],
    async run({ runtime, principal, query }) {
      const { limit = DEFAULT_LIMIT, offset = 0, clientId, cursor, sort = 'activity' } = query
      if (clientId !== undefined) {
        const thread = await byClientId(runtime, principal, clientId)
        return { threads: thread ? [thread] : [] }
      }
      const threads = await runtime.threads.list({
        ...threadQuery(query, principal),
        after: cursor === undefined ? undefined : placeIn(cursor, sort),
        limit,
        offset,
      })
      const last = threads.at(-1)
      if (!last || threads.length < limit) return { threads }
      return { threads, nextOffset: offset + limit, nextCursor: cursorOf(last, sort) }
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
    run: ({ runtime, thread }) => runtime.threads.get(thread.id),
  }),
  operation('getThreadView', {
    tag: 'threads',
    summary:
      'The thread as a person is shown it: messages, calls, what waits, children, usage. `upTo` is the number of an event: the thread as it was then.',
    scope: 'threads:read',
    query: { upTo: between(0, Number.MAX_SAFE_INTEGER) },
    answers: [json('The view.', ref('ThreadView'))],
    async run({ runtime, thread, query: { upTo } }) {
      if (upTo === undefined) {
        const { tree } = await runtime.threads.get(thread.id)
        return { ...(await currentView(runtime, thread)), tree }
      }
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
      const childThreads = new Map<string, ThreadInfo>()
      const limit = 1000
      for (let offset = 0, isFull = true; isFull; offset += limit) {
        const page = await threads.list({ tenant, parentId, sort: 'oldest', limit, offset })
        for (const thread of page) childThreads.set(thread.id, thread)
        isFull = page.length === limit
      }
      return {
        subagents: children.map(({ createdAt, ...child }) => ({
          ...child,
          // Standard Agents counts in microseconds.
          createdAt: createdAt === undefined ? undefined : new Date(createdAt / 1000).toISOString(),
          thread: childThreads.get(child.reference) ?? null,
        })),
      }
    },
  }),
]

type ListSort = 'activity' | 'created' | 'oldest'

/** Returns the cursor of the page after a thread. It names the order, because a place means nothing in another. */
function cursorOf(thread: ThreadInfo, sort: ListSort): string {
  const { at, id } = placeOf(thread, sort)
  return encodeCursor([sort, at, id])
}

function placeIn(cursor: string, sort: ListSort): ListPlace {
  const types = ['string', 'number', 'string'] as const
  const [order, at, id] = decodeCursor<[string, number, string]>(cursor, types, 'a list of threads')
  if (order === sort) return { at, id }
  throw invalidInput(
    `The cursor is of a list in the order "${order.slice(0, 20)}".`,
    'query.cursor',
  )
}

/** Converts the query of a list. Clients without `threads:all` only see the threads of their own user. */
function threadQuery(
  query: OperationCall<'listThreads', typeof listQuery, unknown>['query'],
  principal: Principal,
): ThreadQuery {
  const { agent, owner, lifecycle: wanted, rootId, search, idPart, tag, tool } = query
  const { forkedFrom, sort } = query
  return {
    tenant: principal.tenant,
    owner: seesAllOwners(principal) ? owner : principal.user,
    agent,
    lifecycle: wanted,
    parentId: query.roots ? null : query.parentId,
    rootId,
    isWaiting: query.waiting,
    search,
    idPart,
    tag,
    tool,
    forkedFrom,
    sort,
  }
}

/**
 * Converts a client's request for a new thread. The thread gets the tenant of the client and, if the
 * client has a user, that user as its owner.
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
