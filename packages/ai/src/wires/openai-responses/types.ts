import type { JsonObject, JsonValue } from '@skein/base'

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
