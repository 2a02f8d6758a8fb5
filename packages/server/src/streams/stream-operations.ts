import { encodeSse } from '@skein/base'
import { HttpError } from '../operations/http-error.ts'
import { operation, type OperationRoute, stream } from '../operations/operation.ts'
import { seesAllOwners } from '../operations/principal.ts'
import { boolean, choice, maxText } from '@skein/base/shape'
import { threadStream } from './thread-stream.ts'
import { treeStream } from './tree-stream.ts'
import { parsePosition } from './tree-position.ts'
import { eventResponse } from './event-stream.ts'

/** Changes of a thread within this time are sent as one. */
const CHANGES_MS = 100

/** The operations that stream the log of a thread as it grows, and the changes of all threads. */
export const streamOperations: readonly OperationRoute[] = [
  operation('streamChanges', {
    tag: 'events',
    summary:
      'The threads that you may see, as they change, with what waits in them for a person. `after` is the id of an earlier event: what has changed since comes first. `until=ready` ends then.',
    scope: 'threads:read',
    query: { after: maxText(500), until: choice('ready') },
    answers: [
      stream(
        '`thread` has a row of the list and what waits in that thread; several changes of a thread may come as one. `ready`: you have everything. `reset`: threads were removed, or the id is unknown; list the threads again.',
      ),
    ],
    errors: ['STREAM_LIMIT'],
    run(call) {
      const { request, runtime, principal, services, query } = call
      // A reconnecting client repeats its first address, so the `last-event-id` header overrides `after`.
      const after = request.headers.get('last-event-id') || query.after
      if (after !== undefined && !/^\d{1,15}:\d{1,15}:.{0,200}$/s.test(after))
        throw new HttpError('The id of the last event is not one of this stream.', {
          code: 'INPUT_INVALID',
          hint: 'Send the `id` of the last event that you received, or leave it out to begin with the present.',
          problems: [{ field: 'query.after', message: 'must be the id of an event' }],
        })
      const { tenant, user } = principal
      const owner = seesAllOwners(principal) ? undefined : user
      return eventResponse(call, async function* (signal) {
        for await (const page of runtime.threads.changes({ tenant, owner, after, signal })) {
          const { position: id, isReset, threads } = page
          // Only the last event of a page carries the position, so that a client that lost some of the page
          // gets all of it again.
          for (const [index, data] of threads.entries())
            yield encodeSse({
              event: 'thread',
              id: index === threads.length - 1 ? id : undefined,
              data: JSON.stringify(data),
            })
          const isReady = threads.length === 0 && !isReset
          if (isReset || isReady)
            yield encodeSse({ event: isReset ? 'reset' : 'ready', id, data: '{}' })
          if (isReady && query.until === 'ready') return
          await new Promise<void>((resolve) => void services.timers.set(CHANGES_MS, resolve))
        }
      })
    },
  }),
  operation('streamThread', {
    tag: 'events',
    summary: 'The log and then what happens, as server-sent events.',
    scope: 'threads:read',
    probe: { query: { until: 'parked' } },
    query: {
      after: maxText(16_000),
      deltas: boolean,
      tree: boolean,
      live: boolean,
      until: choice('parked'),
    },
    answers: [
      stream(
        'Each event has its number as `id`, its type as `event`, and JSON as `data`. `stream_end` says that nothing more will come.',
      ),
    ],
    errors: ['STREAM_LIMIT'],
    run(call) {
      const { request, runtime, thread, services, query } = call
      const { deltas: includesDeltas = true, tree: isTree = false, live: isLive, until } = query
      // A reconnecting client repeats its first address, so the `last-event-id` header overrides `after`. But `until`
      // counts the work since `after`, so that the stream can end if the thread has come to rest meanwhile.
      const since = query.after ?? '0'
      const after = request.headers.get('last-event-id') || since
      const isPosition = (text: string): boolean =>
        isTree ? parsePosition(text) !== undefined : /^\d+(\.\d+)?$/.test(text)
      if (!isPosition(since) || !isPosition(after))
        throw new HttpError('The id of the last event is not one of this stream.', {
          code: 'INPUT_INVALID',
          hint: 'Send the `id` of the last event that you received, or leave it out to begin at the first.',
          problems: [{ field: 'query.after', message: 'must be the id of an event' }],
        })
      const { maxTreeThreads: maxThreads } = services.limits
      const options = { after, since, includesDeltas, untilParked: until === 'parked' }
      return eventResponse(call, (signal) =>
        isTree
          ? treeStream(runtime, thread, { ...options, isLive, signal, maxThreads })
          : threadStream(runtime, thread.id, { ...options, signal }),
      )
    },
  }),
]
