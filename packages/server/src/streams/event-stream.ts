import type { Clock } from '@skein/base'
import type { Timers } from '@skein/runtime'
import { HttpError } from '../operations/http-error.ts'
import type { Call } from '../operations/operation.ts'
import { accountOf } from '../operations/principal.ts'
import type { RuntimeNode } from '@skein/runtime/serving'
import type { HttpLimits } from '../http/services.ts'
import { pieceEnd } from './thread-stream.ts'
import { OpenStreams } from './open-streams.ts'

/** The source of a stream, and the connection it is sent on. */
export interface EventStreamOptions {
  /** Returns the encoded events. The iteration must end when the signal aborts. */
  readonly events: (signal: AbortSignal) => AsyncIterable<string>
  readonly client: string
  readonly streams: OpenStreams
  readonly limits: Pick<HttpLimits, 'heartbeatMs' | 'streamBufferBytes'>
  readonly timers: Timers
  readonly clock: Clock
  /** The abort signal of the request. */
  readonly signal: AbortSignal
  /** The time when the client's key expires, which ends the stream. */
  readonly expiresAt?: number | undefined
  /** The client's connection, as far as the server provides access to it. */
  readonly connection?: Call['connection']
  readonly onError: (error: unknown) => void
}

const RETRY_MS = 1000

/**
 * One shared error, because creating an error for each stream that ends would cost more than the stream
 * itself.
 */
const LEFT = new Error('The client has left.')

/**
 * Creates a response with server-sent events. Events are read one by one, as fast as the client reads; at
 * most `streamBufferBytes` are buffered. A client is disconnected, and can reconnect with its last event id,
 * when at two heartbeats in a row its socket holds more than `streamBufferBytes`, or the buffer here is full
 * and nothing was taken from it. Both are looked at, because a server empties the buffer into its sockets.
 */
export function eventStream(options: EventStreamOptions): Response {
  options.streams.checkRoom(options.client)
  const body = new ReadableStream(new Source(options), {
    highWaterMark: options.limits.streamBufferBytes,
    size: (chunk) => chunk?.length ?? 0,
  })
  return new Response(body, {
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store, no-transform',
      // Keeps proxies from buffering the live stream.
      'x-accel-buffering': 'no',
    },
  })
}

/** Answers a request with a stream of events. */
export function eventResponse(
  call: Pick<Call, 'request' | 'principal' | 'services' | 'connection'>,
  events: EventStreamOptions['events'],
): Response {
  const { request, principal, services, connection } = call
  const { streams, limits, timers, clock, report } = services
  return eventStream({
    events,
    client: accountOf(principal),
    streams,
    limits,
    timers,
    clock,
    signal: request.signal,
    expiresAt: principal.expiresAt,
    connection,
    onError: report,
  })
}

/** The largest body of events that is accepted from another node, in bytes. */
const MAX_SHOWN_BYTES = 1024 * 1024

/**
 * Answers another node: `GET /nodes/live/{threadId}` streams what the running step has produced so far, `POST` adds
 * events to it. Only the shared secret of the nodes opens this address, never the key of a client. Returns undefined
 * for other addresses.
 */
export function answerNode(
  request: Request,
  given: {
    readonly node: RuntimeNode
    readonly services: Call['services']
    readonly connection: Call['connection']
  },
): Response | Promise<Response> | undefined {
  const { node, connection, services } = given
  const { prefix, streams, limits, timers, clock, report } = services
  const { pathname } = new URL(request.url)
  const start = `${prefix}/nodes/live/`
  if (!pathname.startsWith(start)) return undefined
  if (!node.isFromNode(request))
    throw new HttpError('Only nodes of this installation may read this.', {
      code: 'UNAUTHENTICATED',
      hint: 'All nodes need the same `nodes.secret`.',
    })
  const threadId = decodeURIComponent(pathname.slice(start.length))
  if (request.method === 'POST') return showAll(request, (events) => node.show(threadId, events))
  const { signal } = request
  return eventStream({
    events: (closed) => node.frames(threadId, closed),
    client: `node ${request.headers.get('x-skein-node') ?? ''}`,
    streams,
    limits,
    timers,
    clock,
    signal,
    connection,
    onError: report,
  })
}

async function showAll(
  request: Request,
  show: (events: Parameters<RuntimeNode['show']>[1]) => void,
): Promise<Response> {
  const { length } = { length: Number(request.headers.get('content-length') ?? Infinity) }
  if (!(length <= MAX_SHOWN_BYTES))
    throw new HttpError('The events are too large.', { code: 'BODY_TOO_LARGE' })
  show((await request.json()) as Parameters<RuntimeNode['show']>[1]) // sent by a node that has the secret
  return new Response(null, { status: 204 })
}

class Source implements UnderlyingDefaultSource<Uint8Array> {
  readonly #options: EventStreamOptions
  readonly #encoder = new TextEncoder()
  readonly #abort = new AbortController()
  readonly #events: AsyncIterator<string>
  readonly #cleanups: (() => void)[] = []
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined
  #isOpen = true
  #wasFull = false
  /** The part of the last event that was not written yet. */
  #rest = ''
  /** Whether only a part of an event was written, so that a comment would become part of its data. */
  #isInEvent = false

  constructor(options: EventStreamOptions) {
    this.#options = options
    this.#events = options.events(this.#abort.signal)[Symbol.asyncIterator]()
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    const { streams, client, timers, limits, signal } = this.#options
    this.#controller = controller
    const leave = (): void => this.#end('')
    signal.addEventListener('abort', leave, { once: true })
    this.#cleanups.push(
      streams.add({ end: () => this.#end(`: going down\nretry: ${RETRY_MS}\n\n`) }, client),
      every(timers, limits.heartbeatMs, () => this.#beat()),
      () => signal.removeEventListener('abort', leave),
    )
    this.#write(`retry: ${RETRY_MS}\n\n`)
    if (signal.aborted) leave()
  }

  async pull(): Promise<void> {
    if (!this.#isSocketFull()) this.#wasFull = false
    try {
      if (this.#rest === '') {
        const step = await this.#events.next()
        if (step.done) return this.#end('')
        this.#rest = step.value
      }
      const end = pieceEnd(this.#rest)
      this.#write(this.#rest.slice(0, end))
      this.#rest = this.#rest.slice(end)
    } catch (error) {
      if (this.#isOpen) this.#options.onError(error)
      this.#end(`: interrupted\nretry: ${RETRY_MS}\n\n`)
    }
  }

  /** Called when the client has disconnected. */
  cancel(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    for (const cleanup of this.#cleanups) cleanup()
    this.#abort.abort(LEFT)
    this.#events.return?.().catch(this.#options.onError)
  }

  #beat(): void {
    const { clock, expiresAt = Infinity } = this.#options
    if (clock.now() >= expiresAt) return this.#end(`: your key has expired\n\n`)
    if ((this.#controller?.desiredSize ?? 0) > 0 && !this.#isSocketFull()) {
      this.#wasFull = false
      // While an event is being written, its pieces show that the connection works.
      if (!this.#isInEvent) this.#write(': still here\n\n')
      return
    }
    if (this.#wasFull) this.#cutOff()
    this.#wasFull = true
  }

  #isSocketFull(): boolean {
    const { connection, limits } = this.#options
    return (connection?.unsentBytes?.() ?? 0) > limits.streamBufferBytes
  }

  #cutOff(): void {
    const { connection } = this.#options
    this.cancel()
    if (connection?.disconnect) connection.disconnect()
    else this.#controller?.error(new Error('The client does not read.'))
  }

  /** Ends the stream. An event that was written in part is dropped by the client, which reconnects. */
  #end(text: string): void {
    if (!this.#isOpen) return
    if (!this.#isInEvent) this.#write(text)
    this.cancel()
    this.#controller?.close()
  }

  #write(text: string): void {
    if (!this.#isOpen || text === '') return
    this.#controller?.enqueue(this.#encoder.encode(text))
    this.#isInEvent = !text.endsWith('\n\n')
  }
}

/** Calls `run` at regular intervals. The returned function stops it. */
function every(timers: Timers, ms: number, run: () => void): () => void {
  let handle = timers.set(ms, ring)
  function ring(): void {
    handle = timers.set(ms, ring)
    run()
  }
  return () => timers.clear(handle)
}
