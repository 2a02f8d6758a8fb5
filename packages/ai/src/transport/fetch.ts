import { AbortRace } from '../contract/abort-race.ts'
import type { Fetch } from '../contract/provider.ts'
import type { ByteSource, Transport, TransportRequest, TransportResponse } from './transport.ts'
import { untilAborted } from './until-aborted.ts'

/**
 * HTTP through any `fetch`. Nothing is trusted about it: one that ignores its signal, or answers
 * after it, still settles and is cleaned up at once.
 */
export function fetchTransport(fetch: Fetch): Transport {
  return {
    async send(request: TransportRequest): Promise<TransportResponse> {
      const { url, method, headers, body, signal } = request
      signal.throwIfAborted()
      const init: RequestInit = {
        method,
        headers,
        signal,
        // A redirect would turn a POST into a GET or carry the key to another host.
        redirect: 'manual',
        ...(body !== undefined && { body }),
      }
      const answer = Promise.resolve(fetch(url, init))
      signal.addEventListener('abort', () => void answer.then(discard, ignore), { once: true })
      const response = await untilAborted(signal, answer)
      if (typeof response?.status !== 'number') {
        throw new TypeError('The custom fetch did not resolve to a Response.')
      }
      return {
        status: response.status,
        headers: response.headers ?? new Headers(),
        body: bodyOf(response, signal),
      }
    },
  }
}

function ignore(): void {}

/** For an answer that came after the call was given up. */
function discard(response: Response): void {
  if (response?.body && !response.body.locked) response.body.cancel().catch(ignore)
}

function bodyOf(response: Response, signal: AbortSignal): ByteSource {
  // A hand-made double of `Response` often has no stream.
  return typeof response.body?.getReader === 'function'
    ? new StreamSource(response.body.getReader(), signal)
    : new WholeSource(response, signal)
}

class StreamSource implements ByteSource {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array | string>
  /** One listener for the whole body: one per read would cost more than the read. */
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
