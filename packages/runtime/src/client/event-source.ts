import { SseDecoder, type SseEvent } from '@skein/base'
import { ClientError, notReached, type Requester } from './requester.ts'

/** The part of a stream to read. */
export interface StreamOptions {
  /** Id of the last event you have; when absent, the stream begins with the first event. */
  readonly after?: string
  readonly signal?: AbortSignal
  /** Whether deltas of running steps are sent. Default true. */
  readonly includesDeltas?: boolean
  /**
   * Whether the stream ends when nothing of the thread and its descendants works any more. It ends only after
   * some work that came later than `after`, so it can be opened before a message is sent. Default false.
   */
  readonly untilParked?: boolean
}

/** How streams reconnect after a break. */
export interface EventSourceOptions {
  readonly wait?: (ms: number, signal: AbortSignal | undefined) => Promise<void>
  readonly random?: () => number
  /** The time without any data, even a heartbeat, after which a stream is treated as broken. Default 60 s. */
  readonly quietMs?: number
}

const FIRST_WAIT_MS = 250
const LONGEST_WAIT_MS = 15_000

/**
 * Reads a stream of the server. Whenever the connection breaks, it reconnects with the id of the last event,
 * until the server ends the stream or refuses it for good, or the signal aborts.
 */
export async function* readEvents(
  requester: Requester,
  {
    threadId,
    query,
  }: {
    readonly threadId: string
    readonly query: Readonly<Record<string, boolean | string | undefined>>
  },
  { after = '0', untilParked, includesDeltas, signal }: StreamOptions,
  { wait = waitFor, random = Math.random, quietMs = 60_000 }: EventSourceOptions = {},
): AsyncGenerator<SseEvent, void, undefined> {
  let lastId: string | undefined
  let failures = 0
  while (!signal?.aborted) {
    let waitMs: number | undefined
    try {
      const response = await requester.send(
        'streamThread',
        { threadId },
        {
          query: {
            ...query,
            after,
            until: untilParked === true ? 'parked' : undefined,
            deltas: includesDeltas === false ? false : undefined,
          },
          headers: {
            accept: 'text/event-stream',
            ...(lastId !== undefined && { 'last-event-id': lastId }),
          },
          signal,
        },
      )
      for await (const event of decoded(response, quietMs)) {
        failures = 0
        if (event.event === 'stream_end') return
        lastId = event.id
        yield event
      }
    } catch (error) {
      if (signal?.aborted) return
      if (!(error instanceof ClientError) || !error.isTemporary) throw error
      waitMs = error.retryAfterMs
    }
    if (signal?.aborted) return
    const backoff = Math.min(FIRST_WAIT_MS * 2 ** failures++, LONGEST_WAIT_MS)
    // The wait is randomised, because after a restart of the server all clients reconnect at once.
    await wait(waitMs ?? backoff * (0.5 + random() / 2), signal)
  }
}

async function* decoded(
  response: Response,
  quietMs: number,
): AsyncGenerator<SseEvent, void, undefined> {
  if (!response.body) return
  const decoder = new SseDecoder()
  const reader = response.body.getReader()
  try {
    for (;;) {
      const { done, value } = await readWithin(reader, quietMs)
      if (done) return
      yield* decoder.push(value)
    }
  } finally {
    reader.cancel().catch(() => undefined) // the connection may be broken already
  }
}

/**
 * Reads the next chunk. Throws a temporary error when the connection breaks or goes quiet, so that the caller
 * reconnects.
 */
async function readWithin(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  quietMs: number,
): Promise<ReadableStreamReadResult<Uint8Array>> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const quiet = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(notReached(new Error('The stream went quiet.'))), quietMs)
  })
  try {
    return await Promise.race([reader.read(), quiet])
  } catch (error) {
    throw error instanceof ClientError ? error : notReached(error)
  } finally {
    clearTimeout(timer)
  }
}

function waitFor(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done, { once: true })
  })
}
