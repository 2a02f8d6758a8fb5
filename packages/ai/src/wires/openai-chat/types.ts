import type { JsonObject, JsonValue } from '@skein/base'

/**
 * The parts of Chat Completions that this wire reads. Every field may be missing or of another
 * kind: servers of this format differ, so all are checked where they are used.
 */
export interface ChatChunk {
  readonly id?: string
  readonly model?: string
  readonly choices?: readonly ChatChoice[] | null
  readonly usage?: JsonObject | null
  readonly error?: JsonValue
  readonly x_groq?: { readonly usage?: JsonObject; readonly error?: JsonValue } | null
}

/** A choice of a stream has `delta`, of a whole answer `message`: the same fields in one piece. */
export interface ChatChoice {
  readonly index?: number
  readonly delta?: ChatDelta | null
  readonly message?: ChatDelta | null
  readonly finish_reason?: string | null
  readonly logprobs?: JsonObject | null
  readonly usage?: JsonObject | null
}

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

export interface ChatToolCall {
  readonly index?: number | null
  readonly id?: string | null
  readonly type?: string
  readonly function?: ChatFunction
  readonly custom?: { readonly name?: string; readonly input?: string }
}

export interface ChatFunction {
  readonly name?: string | null
  /** Text by the standard; some servers send the object itself. */
  readonly arguments?: JsonValue
}

export interface ChatAudio {
  readonly id?: string
  readonly data?: string
  readonly transcript?: string
  readonly expires_at?: number
}
