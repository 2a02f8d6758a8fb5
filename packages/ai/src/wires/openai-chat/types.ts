import type { ToolCallIdRule } from '../transcript.ts'
import type { JsonObject, JsonValue } from '@skein/base'

/** Kinds of input besides text. */
export type ChatMedia = 'image' | 'audio' | 'document' | 'video'

/**
 * Where a vendor departs from OpenAI's Chat Completions. Parameters are never part of it: what
 * the caller puts in `params` (`max_tokens` or `max_completion_tokens`, …) is sent as it is.
 */
export interface OpenAIChatDialect {
  /** Role of the system prompt. */
  readonly systemRole: 'system' | 'developer'
  /** The vendor understands `stream_options.include_usage`; others report usage unasked or never. */
  readonly streamUsage: boolean
  /** `json_object` cannot carry a schema: the schema is then put into the system prompt. */
  readonly structuredOutput: 'json_schema' | 'json_object'
  /** Kinds of input the vendor accepts in addition to text. Others are refused before anything is sent. */
  readonly media: readonly ChatMedia[]
  /**
   * How a document given by address is sent; `reject` where the vendor accepts only bytes.
   * `document_url` is Mistral's part, which holds bytes too, as a data URL.
   */
  readonly documentUrl: 'reject' | 'file_data' | 'document_url'
  /** Where the model's own reasoning is sent back. Reasoning from elsewhere is never sent. */
  readonly reasoning: ReasoningField | 'drop'
  /** Further fields of an answer that the vendor wants back as they came. */
  readonly replayFields: readonly string[]
  /** Ids that break the rule are replaced by a hash of them. */
  readonly toolCallId: ToolCallIdRule
}

/** `thinking` is Mistral's: a content part. `reasoning_details` is kept and returned whole. */
type ReasoningField = 'reasoning_content' | 'reasoning' | 'reasoning_details' | 'thinking'

/** The dialect that most servers of this format accept. */
export const chatDialect: OpenAIChatDialect = {
  systemRole: 'system',
  streamUsage: true,
  structuredOutput: 'json_schema',
  media: ['image', 'audio', 'document'],
  documentUrl: 'reject',
  reasoning: 'drop',
  replayFields: [],
  toolCallId: { pattern: /^[^]+$/, maxLength: 512 },
}

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

/** What a chunk adds to the message, or the whole message. */
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

/** A call of a tool, or a piece of one. */
export interface ChatToolCall {
  readonly index?: number | null
  readonly id?: string | null
  readonly type?: string
  readonly function?: ChatFunction
  readonly custom?: { readonly name?: string; readonly input?: string }
}

interface ChatFunction {
  readonly name?: string | null
  /** Text by the standard; some servers send the object itself. */
  readonly arguments?: JsonValue
}

/** A spoken answer, or a piece of one. */
export interface ChatAudio {
  readonly id?: string
  readonly data?: string
  readonly transcript?: string
  readonly expires_at?: number
}
