import type { JsonObject, JsonValue } from '@skein/base'

/**
 * The fields of Chat Completions that are read here. Servers of this format differ: every field may be
 * missing or have another type, so all are checked where they are read.
 */
export interface ChatChunk {
  readonly id?: string
  readonly model?: string
  readonly choices?: readonly ChatChoice[] | null
  readonly usage?: JsonObject | null
  readonly error?: JsonValue
  readonly x_groq?: { readonly usage?: JsonObject; readonly error?: JsonValue } | null
}

/** A choice has `delta` in a stream and `message` in a complete answer, with the same fields. */
export interface ChatChoice {
  readonly index?: number
  readonly delta?: ChatDelta | null
  readonly message?: ChatDelta | null
  readonly finish_reason?: string | null
  readonly logprobs?: JsonObject | null
  readonly usage?: JsonObject | null
}

/** What a chunk adds to the message, or the complete message. */
export interface ChatDelta {
  readonly role?: string
  readonly content?: string | readonly JsonObject[] | null
  readonly refusal?: string | null
  readonly reasoning?: string | null
  readonly reasoning_content?: string | null
  readonly reasoning_details?: readonly JsonObject[] | null
  readonly tool_calls?: readonly ChatToolCall[] | null
  readonly function_call?: ChatFunction | null
  readonly audio?: ChatAudio | null
  readonly images?: readonly JsonObject[] | null
}

/** A tool call, or a piece of it. */
export interface ChatToolCall {
  readonly index?: number | null
  readonly id?: string | null
  readonly type?: string
  readonly function?: ChatFunction
  readonly custom?: { readonly name?: string; readonly input?: string }
}

interface ChatFunction {
  readonly name?: string | null
  /** JSON text in OpenAI's format; some servers send the object itself. */
  readonly arguments?: JsonValue
}

/** An audio answer, or a piece of it. */
export interface ChatAudio {
  readonly id?: string
  readonly data?: string
  readonly transcript?: string
  readonly expires_at?: number
}
