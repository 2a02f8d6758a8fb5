import type { JsonObject, JsonValue, SseEvent } from '@skein/base'
import type { UserContent } from '../contract/content.ts'
import type { UPPError } from '../contract/error.ts'
import type { StreamEvent } from '../contract/event.ts'
import type { Message } from '../contract/message.ts'
import type { BoundLLMModel, LLMRequest, Params, Settings, WireName } from '../contract/provider.ts'
import type { Warning } from '../contract/turn.ts'
import type { BodyFrames } from '../transport/read-answer.ts'
import type { ErrorResponse, VendorError } from '../contract/vendor-error.ts'

/**
 * The vendor and model of a request. They decide which content is sent back unchanged and which is
 * simplified.
 */
export interface Target<Dialect = unknown> {
  /** The provider name, which is also the namespace of metadata. */
  readonly provider: string
  readonly modelId: string
  /** The vendor's deviations from its format; each format has its own type for them. */
  readonly dialect: Dialect
}

/**
 * A vendor format for clients: pure synchronous functions that write requests and read answers as JSON. A
 * complete answer decodes to the same events as a stream.
 */
export interface Wire<Dialect = unknown> {
  readonly name: WireName
  /** How a streamed body is divided into frames. */
  readonly framing: 'sse' | 'ndjson' | 'binary'
  /** Divides a binary body into frames of at most `maxBytes`. Throws for bytes that are no frames. */
  createFrames?(maxBytes: number): BodyFrames
  encodeRequest(request: LLMRequest, target: Target<Dialect>, mode: RequestMode): EncodedRequest
  /** See `BoundLLMModel.refuse`. `encodeRequest` throws the same error for such a block of a user. */
  refuse(block: UserContent, target: Target<Dialect>): UPPError | undefined
  /**
   * Writes settings as parameters of this format; without this method, no setting is sent. `params` are those
   * of the caller, which win over what is written here; `messages` is the conversation, if it is known.
   */
  writeSettings?(
    settings: WireSettings,
    target: Target<Dialect>,
    params?: Params,
    messages?: readonly Message[],
  ): WrittenSettings
  /** Decodes a complete answer into the events that a stream would have produced. Throws `UPPError`. */
  decodeResponse(body: JsonValue, context: DecodeContext<Dialect>): StreamEvent[]
  createDecoder(context: DecodeContext<Dialect>): WireDecoder
  /** See `BoundLLMModel.readData`. */
  readonly readData?: NonNullable<BoundLLMModel['readData']>
  /** Reads the vendor's error body and headers; the transport adds the status and removes secrets. */
  decodeError(response: ErrorResponse, target: Target<Dialect>): VendorError
}

/** The settings that formats share. */
export type WireSettings = Settings

/** Settings written as parameters of one format. */
export interface WrittenSettings {
  readonly params: JsonObject
  /** The settings that the format, the vendor or the model does not have, or not with this value. */
  readonly dropped: readonly (keyof WireSettings)[]
  /** Why a setting was dropped, or what was sent for it instead. */
  readonly notes?: readonly SettingNote[]
}

/** What became of a setting that a model does not accept as it is. */
export interface SettingNote {
  readonly setting: keyof WireSettings
  readonly change: 'dropped' | 'adjusted'
  readonly reason: string
}

/** Whether the answer is requested complete or as a stream. */
export type RequestMode = 'complete' | 'stream'

/** A request ready to be sent. */
export interface EncodedRequest {
  /** The body as JSON text. If there are `pieces`, the text is made only when it is read. */
  readonly body: string
  /** The body of a long request in pieces, text and UTF-8, for transports that can send those. */
  readonly pieces?: readonly (string | Uint8Array)[]
  /** The path below the base URL, e.g. `/chat/completions`. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly warnings: readonly Warning[]
  /** Set if the vendor is asked to wrap the structured answer; returns an object that removes the wrapper. */
  readonly unwrap?: (() => ValueUnwrapper) | undefined
}

/** Removes the wrapper of a structured answer from its text, piece by piece. */
export interface ValueUnwrapper {
  push(text: string): string
  /** Returns the remaining text, without the closing brace of the wrapper. */
  end(): string
}

/** The request whose answer is decoded. */
export interface DecodeContext<Dialect = unknown> {
  readonly target: Target<Dialect>
  readonly request: LLMRequest
  /** Warnings to be reported in `message_stop`. */
  readonly warnings: readonly Warning[]
  /** As in `EncodedRequest`: returns an object that removes the wrapper. Called for each text of the answer. */
  readonly unwrap?: (() => ValueUnwrapper) | undefined
}

/** Converts frames into events. Throws `UPPError` for an error frame or a malformed frame. */
export interface WireDecoder {
  /** Decodes one frame. With `ndjson` framing, `frame.data` is the line. */
  push(frame: SseEvent): StreamEvent[]
  /**
   * Called at the end of the body. Throws if the terminal event is missing, because the answer is then
   * incomplete.
   */
  end(): StreamEvent[]
}
