import { type MaybePromise } from '@skein/base'
/**
 * Sends HTTP requests. There are two implementations: any `fetch`, and on Node a keep-alive client over
 * sockets that is much faster than `fetch`. Retries, timeouts, keys and errors are handled above this
 * interface.
 */
export interface Transport {
  /**
   * Resolves once the response headers have arrived; rejects as soon as `request.signal` aborts, with its
   * reason.
   */
  send(request: TransportRequest): Promise<TransportResponse>
}

/** One HTTP request. */
export interface TransportRequest {
  readonly url: string
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Header names are in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array<ArrayBuffer> | FormData | BodyPieces
  /** Aborting closes the connection immediately, before or after the response headers. */
  readonly signal: AbortSignal
  /** The limit for making a connection, in milliseconds. A `fetch` has its own. */
  readonly connectMs?: number
}

/** A long body that consists of text and bytes. The Node client sends the pieces without joining them. */
export interface BodyPieces {
  /** The pieces in order; text is sent as UTF-8. */
  readonly pieces: readonly (string | Uint8Array)[]
  /** The whole body as one text; joined when this member is read. */
  readonly body: string
}

/** True for a body in pieces. */
export function isInPieces(body: unknown): body is BodyPieces {
  return typeof body === 'object' && body !== null && 'pieces' in body && Array.isArray(body.pieces)
}

/** One HTTP response; its body is read as it arrives. */
export interface TransportResponse {
  readonly status: number
  readonly headers: ResponseHeaders
  readonly body: ByteSource
}

/** The part of `Headers` that is used here. */
export interface ResponseHeaders {
  get(name: string): string | null
  /** Header names are in lower case. */
  forEach(visit: (value: string, name: string) => void): void
}

/** A response body, read in the pieces in which it arrives. */
export interface ByteSource {
  /**
   * Returns the bytes that have arrived, at least one; undefined at the end. Returns a promise only if it has to wait
   * for bytes. Fails as soon as the signal of the request aborts, with its reason.
   */
  read(): MaybePromise<Uint8Array | undefined>
  /** Stops reading and closes the connection. Idempotent, never throws. */
  cancel(): void
}
