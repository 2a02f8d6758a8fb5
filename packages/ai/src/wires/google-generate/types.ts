import type { JsonObject, JsonValue } from '@skein/base'
import type { AcceptedSettings } from '../../contract/accepted-settings.ts'

/** The settings that may differ between servers and models of this format. */
export interface GoogleDialect {
  /**
   * Returns the substitute for the thought signature of a call made by another vendor's model. Newer
   * models reject such a call without it.
   */
  readonly unsignedCall?: (modelId: string) => string | undefined
  /** Returns the settings that a model accepts; undefined if nothing is known, so that all are sent as they are. */
  readonly accepts?: (modelId: string) => AcceptedSettings | undefined
}

/** One part of a content: `text`, `inlineData`, `functionCall`, … with accompanying fields. */
export type GooglePart = JsonObject

/** A complete answer, or one frame of a stream. Untrusted: every field is checked where it is read. */
export interface GoogleResponse {
  readonly candidates?: JsonValue
  readonly promptFeedback?: JsonValue
  readonly usageMetadata?: JsonValue
  readonly responseId?: JsonValue
  readonly modelVersion?: JsonValue
  readonly error?: JsonValue
}

/** One piece of streamed arguments, with the JSON path of its value. */
export interface PartialArgument {
  readonly jsonPath?: JsonValue
  readonly stringValue?: JsonValue
  readonly numberValue?: JsonValue
  readonly boolValue?: JsonValue
  readonly nullValue?: JsonValue
  readonly willContinue?: JsonValue
}

/** The name of this vendor format, as stored in metadata. */
export const API = 'google-generate'
