import { untilAborted } from '@skein/base'
import { sharedTransport } from '#http-client'
import type { Fetch, ProviderConfig } from '../contract/provider.ts'
import {
  type ByteSource,
  isInPieces,
  type Transport,
  type TransportRequest,
  type TransportResponse,
} from './transport.ts'
import { AbortRace } from '../contract/abort-race.ts'

/**
 * The `fetch` at load time. If the application replaces it later (a mock, an instrumentation), the
 * replacement must be used instead of the fast client.
 */
const platformFetch: unknown = globalThis.fetch

/**
 * Chooses how to send one request: the caller's `fetch`, the fast Node client, or the platform's
 * `fetch`.
 */
export function pickTransport({ fetch }: ProviderConfig): Transport {
  if (fetch) return fetchTransport(fetch)
  // The fast client is used only where nothing in the process changes how `fetch` works. It reads the proxies
  // from the environment itself.
  const fast = globalThis.fetch === platformFetch ? sharedTransport() : undefined
  return fast ?? fetchTransport(callPlatformFetch)
}

const callPlatformFetch: Fetch = (input, init) => globalThis.fetch(input, init)

/**
 * Makes a transport from any `fetch`. A `fetch` that ignores its abort signal, or resolves after the
 * abort, does not delay an abort: `send` rejects immediately and a late response is cancelled.
 */
function fetchTransport(fetch: Fetch): Transport {
  return {
    async send(request: TransportRequest): Promise<TransportResponse> {
      const { url, method, headers, body, signal } = request
      signal.throwIfAborted()
      const init: RequestInit = {
        method,
        headers,
        signal,
        // Redirects are not followed: that would turn a POST into a GET, or send the key to another host.
        redirect: 'manual',
        body: isInPieces(body) ? body.body : body,
      }
      const answer = Promise.resolve(fetch(url, init))
      let response: Response
      try {
        response = await untilAborted(signal, answer)
      } catch (error) {
        // Cancels the body of a response that arrives after the call was aborted.
        void answer.then((late) => {
          if (late?.body && !late.body.locked) late.body.cancel().catch(ignore)
        }, ignore)
        throw error
      }
      if (typeof response?.status !== 'number') {
        throw new TypeError('The custom fetch did not resolve to a Response.')
      }
      return {
        status: response.status,
        headers: response.headers ?? new Headers(),
        // Hand-written test doubles of `Response` often have no stream.
        body:
          typeof response.body?.getReader === 'function'
            ? new StreamSource(response.body.getReader(), signal)
            : new WholeSource(response, signal),
      }
    },
  }
}

function ignore(): void {}

class StreamSource implements ByteSource {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array | string>
  /**
   * Has one abort listener for the whole body, because adding a listener for each read would cost more
   * than the read.
   */
  readonly #race: AbortRace
  #ended = false

  constructor(reader: ReadableStreamDefaultReader<Uint8Array | string>, signal: AbortSignal) {
    this.#reader = reader
    this.#race = new AbortRace(signal, () => signal.reason as Error)
  }

  async read(): Promise<Uint8Array | undefined> {
    for (;;) {
      const { done, value } = await this.#race.run(this.#reader.read())
      if (done) {
        this.#ended = true
        this.#race.dispose()
        return undefined
      }
      const bytes = typeof value === 'string' ? new TextEncoder().encode(value) : value
      if (bytes.length > 0) return bytes
    }
  }

  cancel(): void {
    if (this.#ended) return
    this.#ended = true
    this.#race.dispose()
    this.#reader.cancel().catch(ignore)
  }
}

class WholeSource implements ByteSource {
  readonly #response: Response
  readonly #signal: AbortSignal
  #ended = false

  constructor(response: Response, signal: AbortSignal) {
    this.#response = response
    this.#signal = signal
  }

  async read(): Promise<Uint8Array | undefined> {
    if (this.#ended) return undefined
    this.#ended = true
    const text = await untilAborted(this.#signal, this.#response.text())
    return text === '' ? undefined : new TextEncoder().encode(text)
  }

  cancel(): void {
    this.#ended = true
  }
}
