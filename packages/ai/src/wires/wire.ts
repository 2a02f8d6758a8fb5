import type { JsonObject, JsonSchema, JsonValue, SseEvent } from '@skein/base'
import type { ErrorResponse, VendorError } from '../contract/vendor-error.ts'
import type { ErrorCode } from '../contract/error.ts'
import type { StreamEvent } from '../contract/event.ts'
import type { LLMRequest, Params } from '../contract/provider.ts'
import type { WireName } from '../contract/wire-name.ts'
import type { Warning } from '../contract/turn.ts'
import type { Message } from '../contract/message.ts'
import type { Tool } from '../contract/tool.ts'

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

/** The server half of a vendor format: lets ordinary clients of that vendor talk to us. */
export interface WireServer {
  readonly name: WireName
  /** Throws `UPPError` INVALID_REQUEST that names the wrong field. */
  decodeRequest(body: JsonValue, route: WireRoute): ServerRequest
  encodeResponse(events: readonly StreamEvent[], context: EncodeContext): JsonObject
  createEncoder(context: EncodeContext): WireEncoder
  encodeError(error: ServerError): { readonly status: number; readonly body: JsonObject }
}

/** What the address says, for wires that put model and mode there (Google). */
export interface WireRoute {
  readonly path: string
  readonly search: string
}

/** A request as a client sent it, decoded. */
export interface ServerRequest {
  readonly modelId: string
  readonly messages: readonly Message[]
  readonly system?: string
  /** Everything else the client sent, unchanged. */
  readonly params: Params
  /** Declared by the client; `run` is never called by the server. */
  readonly tools: readonly Omit<Tool, 'run' | 'approval'>[]
  readonly structure?: JsonSchema
  readonly stream: boolean
  /** True where the client asked for usage in a stream (OpenAI Chat). */
  readonly includeUsage: boolean
}

/** What an encoder has to know about the answer it writes. */
export interface EncodeContext {
  readonly request: ServerRequest
  /** The id of the response, in the vendor's style, is made from this id. */
  readonly id: string
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  /** Further fields of the response, where the format has room for them. */
  readonly fields?: JsonObject
}

/** Turns events into wire text (SSE frames or lines), ready to be written. */
export interface WireEncoder {
  push(event: StreamEvent): string
  /** Closing text, e.g. `data: [DONE]`. */
  end(): string
  /** A failure after the first byte was sent. */
  fail(error: ServerError): string
}

/** An error as it goes back to the client. */
export interface ServerError {
  readonly code: ErrorCode
  readonly message: string
  readonly statusCode?: number
  readonly retryAfterMs?: number
  /** Further fields of the error body, for programs; a `code` here replaces the vendor's. */
  readonly fields?: JsonObject
}
