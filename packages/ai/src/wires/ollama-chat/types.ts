import type { JsonObject, JsonValue } from '@skein/base'

/** No settings: servers of this format do not differ in ways that matter here. */
export type OllamaDialect = Readonly<Record<string, never>>

/** A message of a request. */
export interface OllamaMessage extends JsonObject {
  readonly role: string
  readonly content: string
}

/** A complete answer, or one line of a stream. Untrusted: every field is checked where it is read. */
export interface OllamaResponse {
  readonly model?: JsonValue
  readonly created_at?: JsonValue
  readonly message?: JsonValue
  readonly done?: JsonValue
  readonly done_reason?: JsonValue
  readonly error?: JsonValue
  readonly logprobs?: JsonValue
}

/** The name of this vendor format, as stored in metadata. */
export const API = 'ollama-chat'
