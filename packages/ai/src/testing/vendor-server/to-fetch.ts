import type { Fetch } from '../../contract/provider.ts'
import { ConnectionCut } from './fault.ts'
import type { Incoming } from './vendor-request.ts'
import type { Outgoing } from './vendor-server.ts'

/** A handler as a `fetch`, with the failures that a network has. */
export function toFetch(handle: (incoming: Incoming) => Promise<Outgoing>): Fetch {
  return async (input, init) => {
    const request = new Request(input, init)
    const left = new AbortController()
    const signal = AbortSignal.any([request.signal, left.signal])
    const body = new Uint8Array(await request.arrayBuffer())
    const { method, url, headers } = request
    let outgoing: Outgoing
    try {
      outgoing = await handle({ method, url, headers, body, signal })
    } catch (error) {
      throw asFetchError(error)
    }
    const { status, headers: sent, body: bytes } = outgoing
    if (bytes instanceof Uint8Array) {
      return new Response(bytes as Uint8Array<ArrayBuffer>, { status, headers: sent })
    }
    return new Response(
      toStream(bytes, signal, () => left.abort()),
      { status, headers: sent },
    )
  }
}

/** What `fetch` throws when a connection breaks. */
function asFetchError(error: unknown): unknown {
  return error instanceof ConnectionCut ? new TypeError('fetch failed', { cause: error }) : error
}

function toStream(
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
          else controller.enqueue(value as Uint8Array<ArrayBuffer>) // never shared memory
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
