import { HttpError } from '../../operations/http-error.ts'
import { operation, stream, type Route } from '../../operations/operation.ts'
import { boolean, choice, maxText } from '../../operations/shape.ts'
import { eventResponse } from './event-stream.ts'
import { parsePosition, threadStream, treeStream } from './tree-stream.ts'

/** The log of a thread as it grows. */
export const streamOperations: readonly Route[] = [
  operation('streamThread', {
    tag: 'events',
    summary: 'The log and then what happens, as server-sent events.',
    scope: 'threads:read',
    probe: { query: { until: 'parked' } },
    query: { after: maxText(16_000), deltas: boolean, tree: boolean, until: choice('parked') },
    answers: [
      stream(
        'Each event has its number as `id`, its type as `event`, and JSON as `data`. `stream_end` says that nothing more will come.',
      ),
    ],
    errors: ['STREAM_LIMIT'],
    run(call) {
      const { request, runtime, thread, services, query } = call
      const { deltas: includesDeltas = true, tree: isTree = false, until } = query
      // A browser that reconnects sends the address it first had, so the header is the later word.
      const after = request.headers.get('last-event-id') || query.after || '0'
      const position = parsePosition(after)
      if (!position || (position.children.length > 0 && !isTree))
        throw new HttpError('The id of the last event is not one of this stream.', {
          code: 'INPUT_INVALID',
          hint: 'Send the `id` of the last event that you received, or leave it out to begin at the first.',
          problems: [{ field: 'query.after', message: 'must be the id of an event' }],
        })
      const { maxTreeThreads: maxThreads } = services.limits
      return eventResponse(call, (signal) =>
        isTree
          ? treeStream(runtime, thread, { after, includesDeltas, signal, maxThreads })
          : threadStream(runtime, thread.id, {
              after,
              includesDeltas,
              signal,
              untilParked: until === 'parked',
            }),
      )
    },
  }),
]
