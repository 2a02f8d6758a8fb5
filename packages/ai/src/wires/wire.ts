import type { JsonValue, SseEvent } from '@skein/base'
import type { UPPErrorOptions } from '../contract/error.ts'
import type { StreamEvent } from '../contract/event.ts'
import type { LLMRequest } from '../contract/provider.ts'
import type { Warning } from '../contract/turn.ts'

/** The formats by name. */
export type WireName =
  'openai-chat' | 'openai-responses' | 'anthropic-messages' | 'google-generate' | 'ollama-chat'

/** To whom a request goes: decides what is replayed verbatim and what is degraded. */
export interface Target<Dialect = unknown> {
  /** Provider name: the metadata namespace. */
  readonly provider: string
  readonly modelId: string
  /** The vendor's deviations from the wire; each wire defines its own table. */
  readonly dialect: Dialect
}

/** The client half of a vendor format: pure synchronous functions on JSON. */
export interface Wire<Dialect = unknown> {
  readonly name: WireName
  /** How a streamed body is cut into frames. */
  readonly framing: 'sse' | 'ndjson'
  encodeRequest(request: LLMRequest, target: Target<Dialect>, mode: RequestMode): EncodedRequest
  /** A whole answer as the events that a stream would have given. Throws `UPPError`. */
  decodeResponse(body: JsonValue, context: DecodeContext<Dialect>): StreamEvent[]
  createDecoder(context: DecodeContext<Dialect>): WireDecoder
  /** Reads the vendor's error body and headers; the transport adds status and redaction. */
  decodeError(response: ErrorResponse, target: Target<Dialect>): VendorError
}

/** Whether the answer is waited for or streamed. */
export type RequestMode = 'complete' | 'stream'

/** A request as it goes out. */
export interface EncodedRequest {
  /** JSON text. */
  readonly body: string
  /** Below the base URL, e.g. `/chat/completions`. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly warnings: readonly Warning[]
}

/** What a decoder has to know about the request it decodes the answer of. */
export interface DecodeContext<Dialect = unknown> {
  readonly target: Target<Dialect>
  readonly request: LLMRequest
  /** To be reported on `message_stop`. */
  readonly warnings: readonly Warning[]
}

/** Folds frames into events. Throws `UPPError` on an error frame or a malformed one. */
export interface WireDecoder {
  /** With `ndjson` framing, `frame.data` is the line. */
  push(frame: SseEvent): StreamEvent[]
  /** The body ended. Throws when the terminal event never came (a cut stream is not an answer). */
  end(): StreamEvent[]
}

/** A response that is no success. */
export interface ErrorResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null }
  /** Parsed if it was JSON. */
  readonly json: JsonValue | undefined
  readonly text: string
}

/** What a vendor's error says; fields left out are derived from the HTTP status. */
export type VendorError = { readonly message: string } & Partial<
  Pick<
    UPPErrorOptions,
    'code' | 'vendorCode' | 'vendorType' | 'requestId' | 'retryAfterMs' | 'shouldRetry' | 'hint'
  >
>
