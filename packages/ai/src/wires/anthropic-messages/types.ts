import type { JsonObject, JsonValue } from '@skein/base'
import type { AcceptedSettings } from '../../contract/accepted-settings.ts'
import type { ToolCallIdRule } from '../tool-call-id.ts'

/** The settings that may differ between servers of this format. */
export interface AnthropicDialect {
  /** The `max_tokens` to send if the parameters have none; the API requires it. */
  readonly maxTokens: number
  /** Returns the settings that a model accepts; undefined if nothing is known, so that all are sent as they are. */
  readonly accepts?: (modelId: string) => AcceptedSettings | undefined
}

/** A content block of a message in a request or answer. It may have unknown fields. */
export interface AnthropicBlock extends JsonObject {
  readonly type: string
}

/** A complete answer. */
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

/** One event of a stream after `JSON.parse`. Untrusted: every field is checked where it is read. */
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

/** The name of this vendor format, as stored in metadata. */
export const API = 'anthropic-messages'

/** The ids of tool calls that the API accepts. */
export const toolCallIdRule: ToolCallIdRule = { pattern: /^[A-Za-z0-9_-]+$/, maxLength: 64 }
