import type { JsonObject, JsonSchema, JsonValue } from '@skein/base'
import type { ErrorCode } from '../contract/error.ts'
import type { StreamEvent } from '../contract/event.ts'
import type { Message } from '../contract/message.ts'
import type { Params } from '../contract/provider.ts'
import type { Tool } from '../contract/tool.ts'
import type { WireName } from './wire.ts'

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
  /** Id of the response in the vendor's style is made from this. */
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
  /** Beside the message, for programs; a `code` here stands in for the vendor's. */
  readonly fields?: JsonObject
}
