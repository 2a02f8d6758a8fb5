import { HttpError } from '../../operations/http-error.ts'
import { jsonResponse, type Route, type ThreadCall } from '../../operations/operation.ts'
import { accountOf } from '../../operations/principal.ts'
import { answer, limit, listOf, ref, text } from '../../operations/schemas.ts'
import { eventStream } from './event-stream.ts'
import { publicEvent } from '../../operations/events.ts'
import { parsePosition, threadStream, treeStream } from './tree-stream.ts'

export const eventRoutes: readonly Route[] = [
  {
    id: 'listEvents',
    method: 'GET',
    path: '/threads/{threadId}/events',
    tag: 'events',
    summary: 'The log, in order.',
    scope: 'threads:read',
    addresses: 'thread',
    probe: {},
    query: { after: { type: 'integer', minimum: 0 }, limit: limit(1000) },
    answers: [
      {
        status: 200,
        description: 'Events with their numbers.',
        schema: answer({ events: listOf(ref('StoredEvent')) }),
      },
    ],
    async handle({ runtime, thread, query }) {
      const { after = 0, limit: size = 200 } = query as { after?: number; limit?: number } // checked by the schema
      const events = await runtime.threads.events(thread.id, { after, limit: size })
      return jsonResponse({
        events: events.map(({ seq, event }) => ({ seq, event: publicEvent(event) })),
      })
    },
  },
  {
    id: 'streamThread',
    method: 'GET',
    path: '/threads/{threadId}/stream',
    tag: 'events',
    summary: 'The log and then what happens, as server-sent events.',
    scope: 'threads:read',
    addresses: 'thread',
    probe: { query: { until: 'parked' } },
    query: {
      after: text(16_000),
      deltas: { type: 'boolean' },
      tree: { type: 'boolean' },
      until: { type: 'string', enum: ['parked'] },
    },
    answers: [
      {
        status: 200,
        description:
          'Each event has its number as `id`, its type as `event`, and JSON as `data`. `stream_end` says that nothing more will come.',
        mediaType: 'text/event-stream',
        schema: { type: 'string' },
      },
    ],
    errors: ['STREAM_LIMIT'],
    handle: streamThread,
  },
]

interface StreamQuery {
  readonly after?: string
  readonly deltas?: boolean
  readonly tree?: boolean
  readonly until?: 'parked'
}

function streamThread(call: ThreadCall): Response {
  const { request, runtime, thread, principal, services } = call
  const { deltas = true, tree = false, until, ...query } = call.query as StreamQuery // checked by the schema
  // A browser that comes back sends the address it first had, so the header is the later word.
  const after = request.headers.get('last-event-id') || query.after || '0'
  if (!isPosition(after, tree))
    throw new HttpError('The id of the last event is not one of this stream.', {
      code: 'INPUT_INVALID',
      problems: [{ field: 'query.after', message: 'must be the id of an event' }],
    })
  const shared = { after, includesDeltas: deltas }
  return eventStream({
    events: (signal) =>
      tree
        ? treeStream(runtime, thread, {
            ...shared,
            signal,
            maxThreads: services.limits.maxTreeThreads,
          })
        : threadStream(runtime, thread.id, {
            ...shared,
            signal,
            ...(until === 'parked' && { untilParked: true }),
          }),
    client: accountOf(principal),
    streams: services.streams,
    limits: services.limits,
    timers: services.timers,
    clock: services.clock,
    signal: request.signal,
    expiresAt: principal.expiresAt,
    disconnect: call.disconnect,
    onError: services.report,
  })
}

function isPosition(text: string, isTree: boolean): boolean {
  const position = parsePosition(text)
  return position !== undefined && (isTree || position.children.length === 0)
}
