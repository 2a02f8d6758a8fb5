import type { JsonObject } from '@skein/base'
import type { ErrorCode } from '../../contract/error.ts'
import type { WireReply } from '../../gateway/answer-wire.ts'
import type { WireServer } from '../../wires/wire-server.ts'

/**
 * A failure to simulate for one request. A fault within an answer (`malformed`, `error_event`, or with
 * `afterBytes`) uses up a step of the script; a fault in place of an answer does not.
 */
export type Fault =
  /** An HTTP error in the vendor's format, e.g. 429 with `retry-after`, 529, 500. */
  | {
      readonly kind: 'error'
      readonly code: ErrorCode
      readonly status?: number
      readonly message?: string
      readonly headers?: Readonly<Record<string, string>>
      /** Replaces the body of the vendor's error. */
      readonly body?: JsonObject | string
    }
  /** A web page, as a proxy between the client and the vendor sends it. */
  | { readonly kind: 'html'; readonly status?: number }
  /**
   * Sends nothing at all or, with `afterBytes`, nothing after that many bytes of the body, until the
   * client disconnects.
   */
  | { readonly kind: 'stall'; readonly afterBytes?: number }
  /** Breaks the connection before the headers or, with `afterBytes`, after that many bytes of the body. */
  | { readonly kind: 'cut'; readonly afterBytes?: number }
  /** Sends malformed JSON after `afterEvents` events of a stream. */
  | { readonly kind: 'malformed'; readonly afterEvents?: number }
  /** Sends a stream with status 200 that reports an error after `afterEvents` events. */
  | {
      readonly kind: 'error_event'
      readonly code: ErrorCode
      readonly status?: number
      readonly message?: string
      readonly afterEvents?: number
    }

/** Thrown to simulate a broken connection. */
export class ConnectionCut extends Error {}

/** Applies the faults `stall` and `cut` to the bytes of a body. */
export async function* withByteFault(
  chunks: AsyncIterable<Uint8Array>,
  fault: Fault | undefined,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  const isByteFault = fault?.kind === 'stall' || fault?.kind === 'cut'
  if (!isByteFault || fault.afterBytes === undefined) return yield* chunks
  let bytesLeft = fault.afterBytes
  for await (const chunk of chunks) {
    if (chunk.length < bytesLeft) {
      bytesLeft -= chunk.length
      yield chunk
      continue
    }
    if (bytesLeft > 0) yield chunk.subarray(0, bytesLeft)
    if (fault.kind === 'cut') throw new ConnectionCut('The connection was cut.')
    await untilLeft(signal)
  }
}

/** Never resolves; rejects when the client disconnects. */
export function untilLeft(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const fail = (): void => reject(signal.reason)
    if (signal.aborted) fail()
    signal.addEventListener('abort', fail, { once: true })
  })
}

/**
 * Applies the faults `malformed` and `error_event` to the content of a body. A body that is not
 * streamed has no events, so it is cut or replaced as a whole.
 */
export function withEventFault(
  reply: WireReply,
  wire: WireServer,
  fault: Fault | undefined,
): WireReply {
  const isEventFault = fault?.kind === 'malformed' || fault?.kind === 'error_event'
  if (!isEventFault || reply.status !== 200) return reply
  const { body } = reply
  if (typeof body !== 'string') return { ...reply, body: broken(body, wire, fault) }
  if (fault.kind === 'malformed') return { ...reply, body: body.slice(0, body.length >> 1) }
  return { ...reply, body: JSON.stringify(wire.encodeError(errorOf(fault)).body) }
}

async function* broken(
  texts: AsyncGenerator<string, void>,
  wire: WireServer,
  fault: Fault & { kind: 'malformed' | 'error_event' },
): AsyncGenerator<string, void> {
  const { afterEvents = 0 } = fault
  let count = 0
  try {
    while (count < afterEvents) {
      const { done, value } = await texts.next()
      if (done) break
      if (value !== '') count += 1
      yield value
    }
  } finally {
    await texts.return()
  }
  if (fault.kind === 'error_event') {
    // The encoder of the vendor format makes the error event. It requires a request, but does not read it for
    // an error.
    const request = {
      modelId: '',
      messages: [],
      params: {},
      tools: [],
      stream: true,
      includeUsage: false,
    }
    yield wire.createEncoder({ request, id: '', createdAt: 0 }).fail(errorOf(fault))
  } else yield wire.name === 'ollama-chat' ? '{"message":{"con\n' : 'data: {"choices":[{"del\n\n'
}

function errorOf({ code, status, message }: Fault & { kind: 'error_event' }): {
  code: typeof code
  message: string
  statusCode?: number
} {
  const text = message ?? 'The vendor fails on request.'
  return { code, message: text, statusCode: status }
}

export function toStream(
  chunks: AsyncGenerator<Uint8Array, void>,
  signal: AbortSignal,
  leave: () => void,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      start(controller) {
        signal.addEventListener('abort', () => controller.error(signal.reason), { once: true })
      },
      async pull(controller) {
        try {
          const { done, value } = await chunks.next()
          if (signal.aborted) return
          if (done) controller.close()
          else controller.enqueue(value as Uint8Array<ArrayBuffer>) // the chunk is never in shared memory
        } catch (error) {
          if (!signal.aborted) controller.error(asFetchError(error))
        }
      },
      async cancel() {
        leave()
        await chunks.return()
      },
    },
    { highWaterMark: 0 },
  )
}

/** Converts a broken connection into the error that `fetch` throws for it. */
export function asFetchError(error: unknown): unknown {
  return error instanceof ConnectionCut ? new TypeError('fetch failed', { cause: error }) : error
}
