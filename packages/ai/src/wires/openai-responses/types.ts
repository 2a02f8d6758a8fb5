import type { ToolCallIdRule } from '../transcript.ts'
import type { JsonObject, JsonValue } from '@skein/base'

/** Where a vendor departs from OpenAI's Responses. Parameters are never part of it. */
export interface OpenAIResponsesDialect {
  /** Kinds of input the vendor accepts in addition to text. Others are refused before anything is sent. */
  readonly media: readonly ('image' | 'document')[]
  /** Ids that break the rule are replaced by a hash of them. */
  readonly toolCallId: ToolCallIdRule
}

/** The dialect of OpenAI itself. */
export const responsesDialect: OpenAIResponsesDialect = {
  media: ['image', 'document'],
  toolCallId: { pattern: /^[^]+$/, maxLength: 64 },
}

/**
 * An event of a Responses stream, all kinds in one: which fields are there depends on `type`.
 * Every field is checked where it is used.
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
