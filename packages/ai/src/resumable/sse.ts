import { encodeSse, SseDecoder } from '@skein/base'
import { sleep as sleepFor } from '../transport/time-limits.ts'
import {
  eventFromText,
  failureFromText,
  failureToText,
  type LogEntry,
  streamCut,
} from './event-log.ts'
import type { StreamedEvent } from './resumable-streams.ts'

/** Settings of the response that sends a stream as server-sent events. */
export interface SseOptions {
  /**
   * The time without events after which a comment is sent, so that no proxy closes the connection. Default 15
   * seconds.
   */
  readonly heartbeatMs?: number
  /** Added to the headers of the response. */
  readonly headers?: Readonly<Record<string, string>>
}

interface SseSource extends SseOptions {
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>
  readonly onCancel: () => void
}

const encoder = new TextEncoder()
const heartbeat = encoder.encode(': heartbeat\n\n')

/**
 * Returns a response with the events, whose SSE ids are their
 * numbers; the last message is `end` or `failure`.
 */
export function sseResponse(
  batches: AsyncIterator<readonly LogEntry[]>,
  { headers, heartbeatMs = 15_000, sleep = sleepFor, onCancel }: SseSource,
): Response {
  let pending: Promise<IteratorResult<readonly LogEntry[]>> | undefined
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      pending ??= batches.next()
      const timer = new AbortController()
      const silence = sleep(heartbeatMs, timer.signal).catch(() => {}) // the wait was aborted
      try {
        const step = await Promise.race([pending, silence])
        if (!step) return controller.enqueue(heartbeat)
        pending = undefined
        if (step.done) return controller.close()
        controller.enqueue(
          encoder.encode(
            step.value
              .map(({ number, kind, data }) =>
                encodeSse({ ...(kind !== 'event' && { event: kind }), id: `${number}`, data }),
              )
              .join(''),
          ),
        )
      } catch (error) {
        // The log failed, not the model; the reader gets a `failure` message in this case too.
        controller.enqueue(
          encoder.encode(encodeSse({ event: 'failure', data: failureToText(error) })),
        )
        controller.close()
      } finally {
        timer.abort()
      }
    },
    cancel: onCancel,
  })
  return new Response(body, {
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      ...headers,
    },
  })
}

/**
 * Reads a response of `respond` on the client: yields the events until the end. Throws the stream's failure,
 * or STREAM_CUT if the connection ended first; the caller can then resume after the last number.
 *
 *     for await (const { number, event } of readSse(response.body)) …
 */
export async function* readSse(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<StreamedEvent, void, undefined> {
  const decoder = new SseDecoder()
  let last = 0
  for await (const chunk of body) {
    for (const { event, data, id } of decoder.push(chunk)) {
      if (event === 'end') return
      if (event === 'failure') throw failureFromText(data)
      last = Number(id)
      yield { number: last, event: eventFromText(data) }
    }
  }
  throw streamCut(last)
}
