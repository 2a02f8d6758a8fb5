/**
 * One HTTP exchange. Two implementations: any `fetch`, and on Node a keep-alive `node:http` client
 * that costs a fraction of it. Retry, timeouts, keys and errors are above this interface.
 */
export interface Transport {
  /** When the signal aborts, rejects at once with its reason. */
  send(request: TransportRequest): Promise<TransportResponse>
}

/** One HTTP request. */
export interface TransportRequest {
  readonly url: string
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array<ArrayBuffer> | FormData
  /** Aborting closes the socket at once, before or after the headers. */
  readonly signal: AbortSignal
}

/** Status, headers and the body as it arrives. */
export interface TransportResponse {
  readonly status: number
  readonly headers: ResponseHeaders
  readonly body: ByteSource
}

/** The part of `Headers` that is used here. */
export interface ResponseHeaders {
  get(name: string): string | null
  /** Names in lower case. */
  forEach(visit: (value: string, name: string) => void): void
}

/** A body, one network read at a time. */
export interface ByteSource {
  /**
   * The bytes that have arrived, at least one; undefined at the end. When the signal aborts,
   * rejects at once with its reason.
   */
  read(): Promise<Uint8Array | undefined>
  /** Stops reading and closes the connection. Idempotent, never throws. */
  cancel(): void
}
