import type { JsonObject, JsonValue } from '@skein/base'

/** Servers of this format do not differ in ways that matter here. */
export type OllamaDialect = Readonly<Record<string, never>>

/** A message of a request. */
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

/** The name of this wire, as it is kept in metadata. */
export const API = 'ollama-chat'
