import type { JsonObject, JsonSchema, JsonValue } from '@skein/base'
import type { ErrorCode } from '../contract/error.ts'
import type { StreamEvent } from '../contract/event.ts'
import type { Message } from '../contract/message.ts'
import type { Params, WireName } from '../contract/provider.ts'
import type { Tool } from '../contract/tool.ts'

/** A vendor format for servers: lets that vendor's ordinary clients use our server. */
export interface WireServer {
  readonly name: WireName
  /** Decodes a request. Throws a `UPPError` INVALID_REQUEST that names the wrong field. */
  decodeRequest(body: JsonValue, route: WireRoute): ServerRequest
  encodeResponse(events: readonly StreamEvent[], context: EncodeContext): JsonObject
  createEncoder(context: EncodeContext): WireEncoder
  encodeError(error: ServerError): { readonly status: number; readonly body: JsonObject }
  /** For a format whose streams are binary: the bytes of the text that an encoder returned. */
  readonly binary?: { toBytes(text: string): Uint8Array }
}

/** Path and query of a request, for formats that put model and mode there (Google). */
export interface WireRoute {
  readonly path: string
  readonly search: string
}

/** A decoded request of a client. */
export interface ServerRequest {
  readonly modelId: string
  readonly messages: readonly Message[]
  readonly system?: string
  /**
   * The system prompt as the client wrote it, if it has fields that its text does not have (cache marks). For
   * models of the same format.
   */
  readonly systemBlocks?: readonly JsonObject[]
  /** All other fields that the client sent, unchanged. */
  readonly params: Params
  /** Tools that the client declared; the server never runs them. */
  readonly tools: readonly Omit<Tool, 'run' | 'approval'>[]
  readonly structure?: JsonSchema
  readonly stream: boolean
  /** True if a streamed answer must contain usage; only OpenAI Chat clients have to ask for it. */
  readonly includeUsage: boolean
}

/** The request that is answered, and the id, time and further fields of the answer. */
export interface EncodeContext {
  readonly request: ServerRequest
  /** The response id, in the vendor's style, is derived from this id. */
  readonly id: string
  /** The time of the response, in milliseconds since the epoch. */
  readonly createdAt: number
  /** Further fields of the response, for formats that can contain them. */
  readonly fields?: JsonObject
}

/** Converts events to the text that is sent: SSE frames or lines. */
export interface WireEncoder {
  push(event: StreamEvent): string
  /** Returns the closing text, e.g. `data: [DONE]`. */
  end(): string
  /** Returns text that clients ignore, to be sent while the model is silent, so that no proxy ends the connection. */
  ping(): string
  /** Writes a failure after the response has started. */
  fail(error: ServerError): string
}

/** An error to be sent to the client. */
export interface ServerError {
  readonly code: ErrorCode
  readonly message: string
  readonly statusCode?: number
  readonly retryAfterMs?: number
  /**
   * Further fields of the error body, for client programs; a `code` here replaces the code of the
   * vendor's format.
   */
  readonly fields?: JsonObject
}
