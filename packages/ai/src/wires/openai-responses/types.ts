import type { ToolCallIdRule } from '../transcript.ts'
import type { JsonObject, JsonValue } from '@skein/base'

/** A vendor's differences from OpenAI's Responses. Parameters are not part of it. */
export interface OpenAIResponsesDialect {
  /**
   * Kinds of input that the vendor accepts besides text. Other kinds are rejected before a request is
   * sent.
   */
  readonly media: readonly ('image' | 'document' | 'audio' | 'video')[]
  /** The ids that the vendor accepts. Other ids are replaced by their hash. */
  readonly toolCallId: ToolCallIdRule
}

/** The dialect of OpenAI itself. */
export const responsesDialect: OpenAIResponsesDialect = {
  media: ['image', 'document'],
  toolCallId: { pattern: /^[^]+$/, maxLength: 64 },
}

/**
 * An event of a Responses stream of any type; `type` decides which fields are present. Every field is
 * checked where it is read.
 */
export interface ResponsesEvent {
  readonly type?: string
  readonly response?: JsonObject
  readonly item?: JsonObject
  readonly item_id?: string
  readonly output_index?: number
  readonly content_index?: number
  readonly summary_index?: number
  readonly delta?: string
  readonly text?: string
  readonly refusal?: string
  readonly arguments?: string
  readonly input?: string
  readonly part?: JsonObject
  readonly annotation?: JsonValue
  readonly partial_image_b64?: string
  readonly output_format?: string
  readonly error?: JsonValue
}
