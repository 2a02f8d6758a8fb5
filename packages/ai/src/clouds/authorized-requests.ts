import { untilAborted } from '@skein/base'
import { joinBytes } from '../media/bytes.ts'
import type { Authorizer } from '../transport/endpoint.ts'
import {
  type ByteSource,
  isInPieces,
  type ResponseHeaders,
  type Transport,
  type TransportRequest,
  type TransportResponse,
} from '../transport/transport.ts'

/** A request that is complete but for its authentication. */
export interface UnauthorizedRequest {
  readonly url: string
  readonly method: string
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer>
}

/** A response with which a vendor refused a request. */
export interface Refusal {
  readonly status: number
  readonly headers: Pick<ResponseHeaders, 'get'>
  /** The beginning of the body. */
  readonly text: string
}

/** How much of the body of a refusal is read to learn from it. */
const MAX_REFUSAL_BYTES = 64 * 1024

/**
 * Adds the headers that authenticate each request. What a refusal teaches (the vendor's clock, that a token has ended)
 * is used immediately: the request is sent once more.
 */
export abstract class AuthorizedRequests implements Authorizer {
  abstract readonly secrets: readonly string[]

  /** Returns the headers that authenticate a request. May reject with a `UPPError`. */
  protected abstract headersFor(request: UnauthorizedRequest): Promise<Record<string, string>>

  /**
   * Returns true if new headers may help. Called for the statuses 400, 401 and 403 with the headers that were refused,
   * because other requests may have learned of the same meanwhile.
   */
  protected abstract learn(refusal: Refusal, refused: Readonly<Record<string, string>>): boolean

  async send(request: TransportRequest, transport: Transport): Promise<TransportResponse> {
    const authorized = await this.#authorized(request)
    const first = await transport.send(authorized)
    const { status, headers, body } = first
    if (status !== 400 && status !== 401 && status !== 403) return first
    const start = await beginningOf(body)
    const text = new TextDecoder().decode(start)
    if (!this.learn({ status, headers, text }, authorized.headers))
      return { ...first, body: followedBy(start, body) }
    body.cancel()
    return transport.send(await this.#authorized(request))
  }

  async #authorized(request: TransportRequest): Promise<TransportRequest> {
    const { url, method, signal } = request
    const body = bytesOf(request.body)
    const unauthorized = { url, method, headers: request.headers, body }
    const added = await untilAborted(signal, this.headersFor(unauthorized))
    return { ...request, headers: { ...request.headers, ...added }, body: request.body && body }
  }
}

/** Returns the bytes of a body. No request with a form is authorized so. */
function bytesOf(body: TransportRequest['body']): Uint8Array<ArrayBuffer> {
  if (body === undefined || body instanceof FormData) return new Uint8Array()
  if (body instanceof Uint8Array) return body
  const encoder = new TextEncoder()
  if (!isInPieces(body)) return encoder.encode(body)
  const pieces = body.pieces.map((piece) => typeof piece === 'string' ? encoder.encode(piece) : piece) // prettier-ignore
  return new Uint8Array(joinBytes(pieces))
}

/** Reads the beginning of a body. A body that breaks off is as long as it was. */
async function beginningOf(body: ByteSource): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    while (length < MAX_REFUSAL_BYTES) {
      const chunk = await body.read()
      if (!chunk) break
      chunks.push(chunk)
      length += chunk.length
    }
  } catch {
    // The status alone makes it a refusal; the attempt meets the same error when it reads on.
  }
  return joinBytes(chunks)
}

/** Returns a body whose beginning has been read, with that beginning. */
function followedBy(start: Uint8Array, rest: ByteSource): ByteSource {
  let isFirst = start.length > 0
  return {
    async read() {
      if (!isFirst) return rest.read()
      isFirst = false
      return start
    },
    cancel: () => rest.cancel(),
  }
}
