import type { JsonObject, JsonValue } from '@skein/base'

/** What may differ between servers and models that speak this format. */
export interface GoogleDialect {
  /**
   * Replaces the thought signature of a call that this vendor never signed (one made by
   * another vendor's model). Newer models refuse such a call without it.
   */
  readonly unsignedCall?: (modelId: string) => string | undefined
}

/** A piece of content: `text`, `inlineData`, `functionCall`, … and what goes with it. */
export type GooglePart = JsonObject

/** One entry of `contents`. */
export interface GoogleContent extends JsonObject {
  readonly role: 'user' | 'model'
  readonly parts: readonly GooglePart[]
}

/** A whole answer, or one frame of a stream. Untrusted: every field is checked where it is read. */
export interface GoogleResponse {
  readonly candidates?: JsonValue
  readonly promptFeedback?: JsonValue
  readonly usageMetadata?: JsonValue
  readonly responseId?: JsonValue
  readonly modelVersion?: JsonValue
  readonly error?: JsonValue
}

/** A piece of streamed arguments, addressed by JSON path. */
export interface PartialArgument {
  readonly jsonPath?: JsonValue
  readonly stringValue?: JsonValue
  readonly numberValue?: JsonValue
  readonly boolValue?: JsonValue
  readonly nullValue?: JsonValue
  readonly willContinue?: JsonValue
}

/** The name of this wire, as it is kept in metadata. */
export const API = 'google-generate'
