import type { JsonObject, JsonValue } from '@skein/base'

/** Servers of this format do not differ in ways that matter here. */
export type OllamaDialect = Readonly<Record<string, never>>

export interface OllamaMessage extends JsonObject {
  readonly role: string
  readonly content: string
}

/** A whole answer, or one line of a stream: to be distrusted. */
export interface OllamaResponse {
  readonly model?: JsonValue
  readonly created_at?: JsonValue
  readonly message?: JsonValue
  readonly done?: JsonValue
  readonly done_reason?: JsonValue
  readonly error?: JsonValue
  readonly logprobs?: JsonValue
}

export const API = 'ollama-chat'
