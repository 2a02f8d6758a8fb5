import type { JsonObject, JsonValue } from '@skein/base'
import type { AcceptedSettings } from '../../contract/accepted-settings.ts'
import type { ToolCallIdRule } from '../tool-call-id.ts'

/** A vendor's differences from OpenAI's Responses. Parameters are not part of it. */
export interface OpenAIResponsesDialect {
  /**
   * Kinds of input that the vendor accepts besides text. Other kinds are rejected before a request is
   * sent.
   */
  readonly media: readonly ('image' | 'document' | 'audio' | 'video')[]
  /** The ids that the vendor accepts. Other ids are replaced by their hash. */
  readonly toolCallId: ToolCallIdRule
  /** Returns the settings that a model accepts; undefined if nothing is known, so that all are sent as they are. */
  readonly accepts?: (modelId: string) => AcceptedSettings | undefined
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
