/**
 * What a vendor is sent and what it answers, written by hand from its documentation and SDK types
 * (nothing here is recorded traffic). The tests run every case; a wire adds a file of cases.
 */
import type { JsonObject, JsonValue } from '@skein/base'
import type { ErrorCode, ModelReference, StopReason, Turn } from '@skein/ai'
import type { RequestName } from './requests.ts'

export interface VendorCase {
  /** In titles, e.g. `openai (chat)`. */
  readonly name: string
  readonly provider: string
  /** Its id is `m`. */
  readonly model: ModelReference
  /** Path of a waiting request under the base URL. */
  readonly path: string
  /** The whole body of each request of `requests.ts`; `refused`: INVALID_REQUEST, nothing sent. */
  readonly bodies: Readonly<Record<RequestName, JsonObject | 'refused'>>
  /** What a streamed request says beyond a waiting one. */
  readonly streamFields: JsonObject
  /** Where the system prompt stands in a body. */
  readonly systemOf: (body: JsonObject) => unknown
  readonly answers: Answers
  readonly unknown: UnknownFields
  readonly native?: NativeToolCase
  readonly errors: readonly ErrorCase[]
}

/** One answer of the vendor, both ways. */
export interface VendorAnswer {
  readonly whole: JsonValue
  /** The body of the stream. */
  readonly stream: string
}

export interface Answers {
  /** "Hello there", 3 tokens in, 2 out. */
  readonly text: VendorAnswer
  /** Calls `weather` for Oslo and Rome in one message, ids `callOslo1` and `callRome2` where it has ids. */
  readonly calls: VendorAnswer
  /** Nothing but an end. */
  readonly empty: VendorAnswer
  /** `{"name":"Ada"}`. */
  readonly structure: VendorAnswer
  /** The vendor declines, where its format can say so. */
  readonly refusal?: VendorAnswer & { readonly text: string; readonly stopReason: StopReason }
}

/** An answer with fields no one knows, and where they must be in the next request. */
export interface UnknownFields extends VendorAnswer {
  /** Kept in `response.metadata[provider]`. */
  readonly metadata: JsonObject
  /** Read from the next body; undefined when the vendor takes back nothing. */
  readonly sentBack?: { readonly of: (body: JsonObject) => unknown; readonly value: unknown }
}

/** A tool that the vendor runs itself (UPP §11.4). */
export interface NativeToolCase extends VendorAnswer {
  /** The field of a body that has the tools in it; without it they are at the top. */
  readonly holder?: string
  /** For `params.tools`. */
  readonly tool: JsonObject
  readonly check: (turn: Turn) => void
}

export interface ErrorCase {
  readonly name: string
  readonly status: number
  readonly body: JsonValue
  readonly code: ErrorCode
  readonly message: string
}

/** Writes events of a stream. */
export function sse(...data: readonly (JsonValue | string)[]): string {
  return data
    .map((value) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`)
    .join('')
}
