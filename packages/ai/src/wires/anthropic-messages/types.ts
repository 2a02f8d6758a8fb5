import type { JsonObject, JsonValue } from '@skein/base'
import type { ToolCallIdRule } from '../transcript.ts'

/** What may differ between servers that speak this format. */
export interface AnthropicDialect {
  /** Sent as `max_tokens`, which the API demands, when the parameters have none. */
  readonly maxTokens: number
}

/** A content block of a message, in either direction. Unknown fields are part of it. */
export interface AnthropicBlock extends JsonObject {
  readonly type: string
}

/** A message of a request. */
export interface AnthropicMessage extends JsonObject {
  readonly role: 'user' | 'assistant' | 'system'
  readonly content: string | readonly AnthropicBlock[]
}

/** A whole answer. */
export interface AnthropicResponse extends JsonObject {
  readonly id: string
  readonly type: 'message'
  readonly role: 'assistant'
  readonly model: string
  readonly content: readonly AnthropicBlock[]
  readonly stop_reason: string | null
  readonly stop_sequence: string | null
  readonly usage: JsonObject
}

/** The events of a stream, as they are after `JSON.parse`: to be distrusted. */
export interface AnthropicEvent {
  readonly type?: JsonValue
  readonly index?: JsonValue
  readonly message?: JsonValue
  readonly content_block?: JsonValue
  readonly delta?: JsonValue
  readonly usage?: JsonValue
  readonly error?: JsonValue
  readonly request_id?: JsonValue
}

/** The name of this wire, as it is kept in metadata. */
export const API = 'anthropic-messages'

/** Ids of tool calls that the API accepts; it refuses others. */
export const toolCallIdRule: ToolCallIdRule = { pattern: /^[A-Za-z0-9_-]+$/, maxLength: 64 }
