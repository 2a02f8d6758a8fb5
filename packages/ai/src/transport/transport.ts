/**
 * One HTTP exchange. Two implementations: any `fetch`, and on Node a keep-alive `node:http` client
 * that costs a fraction of it. Retry, timeouts, keys and errors are above this interface.
 */
export interface Transport {
  send(request: TransportRequest): Promise<TransportResponse>
}

export interface TransportRequest {
  readonly url: string
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | FormData
  /** Aborting closes the socket at once, before or after the headers. */
  readonly signal: AbortSignal
}

export interface TransportResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  readonly body: ByteSource
}

/** A body, one network read at a time. */
export interface ByteSource {
  /** The bytes that have arrived, at least one; undefined at the end. */
  read(): Promise<Uint8Array | undefined>
  /** Stops reading and closes the connection. Idempotent, never throws. */
  cancel(): void
}
