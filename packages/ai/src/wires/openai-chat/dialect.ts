import type { AcceptedSettings } from '../../contract/accepted-settings.ts'
import type { ChatParameters } from './settings.ts'
import type { ToolCallIdRule } from '../tool-call-id.ts'

/** Kinds of input besides text. */
export type ChatMedia = 'image' | 'audio' | 'document' | 'video'

/**
 * A vendor's differences from OpenAI's Chat Completions. The caller's `params` are not part of it: they are
 * sent unchanged.
 */
export interface OpenAIChatDialect {
  /** The role of the system prompt. */
  readonly systemRole: 'system' | 'developer'
  /**
   * Whether the vendor supports `stream_options.include_usage`. Vendors without it report usage unasked
   * or never.
   */
  readonly streamUsage: boolean
  /**
   * How structured output is requested. With `json_object` no schema field exists, so the schema is put
   * in the system prompt.
   */
  readonly structuredOutput: 'json_schema' | 'json_object'
  /**
   * Kinds of input that the vendor accepts besides text. Other kinds are rejected before a request is
   * sent.
   */
  readonly media: readonly ChatMedia[]
  /**
   * How a document given by URL is sent; `reject` if the vendor accepts only bytes. `document_url` is
   * Mistral's part, which also accepts bytes as a data URL.
   */
  readonly documentUrl: 'reject' | 'file_data' | 'document_url'
  /** The value of `input_audio`: OpenAI's `{ data, format }`, or the base64 text alone (Mistral). */
  readonly audio: 'object' | 'base64'
  /** The names of the audio formats that the vendor accepts; undefined if they are not known. */
  readonly audioFormats?: readonly string[]
  /**
   * The field in which the vendor's own reasoning is sent back. Reasoning of other vendors is never
   * sent.
   */
  readonly reasoning: ReasoningField | 'drop'
  /** Further fields of an answer that are sent back unchanged because the vendor requires it. */
  readonly replayFields: readonly string[]
  /** The ids that the vendor accepts. Other ids are replaced by their hash. */
  readonly toolCallId: ToolCallIdRule
  /** How the vendor names the parameters that the common settings of `llm` are written to. */
  readonly parameters: ChatParameters
  /** Returns the settings that a model accepts; undefined if nothing is known, so that all are sent as they are. */
  readonly accepts?: (modelId: string) => AcceptedSettings | undefined
}

/** `thinking` is a content part of Mistral. `reasoning_details` is stored and sent back unchanged. */
type ReasoningField = 'reasoning_content' | 'reasoning' | 'reasoning_details' | 'thinking'

/** The default dialect: what most servers of Chat Completions accept. */
export const chatDialect: OpenAIChatDialect = {
  systemRole: 'system',
  streamUsage: true,
  structuredOutput: 'json_schema',
  media: ['image', 'audio', 'document'],
  documentUrl: 'reject',
  audio: 'object',
  reasoning: 'drop',
  replayFields: [],
  toolCallId: { pattern: /^[^]+$/, maxLength: 512 },
  parameters: { maxTokens: 'max_tokens', seed: 'seed', reasoning: 'effort' },
}
