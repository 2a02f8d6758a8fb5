import { openrouterEmbeddings } from '../embeddings/openai.ts'
import { openrouterImages } from '../images/openrouter.ts'
import { defineVendor } from './define-vendor.ts'
import { chatCompletions, chooseApi, responses } from './openai-family.ts'
import type { ChatParams, ResponsesParams, TwoApis } from './openai.ts'

const chat = chatCompletions({
  media: ['image', 'audio', 'document', 'video'],
  documentUrl: 'file_data',
  reasoning: 'reasoning_details',
  parameters: { maxTokens: 'max_tokens', seed: 'seed', reasoning: 'object' },
  replayFields: ['annotations'],
})

/** OpenRouter's Responses has parts for audio and video, which OpenAI's has not. */
const openResponses = responses({ media: ['image', 'document', 'audio', 'video'] })

/** Known parameters, by the names of `@openrouter/sdk 1.3.19`. */
type ChatKnown = Omit<ChatParams, 'n' | 'stream_options'> &
  Routing & {
    readonly max_completion_tokens?: number
    readonly min_p?: number
    readonly prediction?: object
    readonly reasoning?: {
      readonly effort?: Effort
      readonly summary?: 'auto' | 'concise' | 'detailed'
      readonly max_tokens?: number
      readonly exclude?: boolean
      readonly enabled?: boolean
    }
    readonly reasoning_effort?: Effort
    readonly repetition_penalty?: number
    readonly stream_options?: { readonly include_usage?: boolean }
    readonly top_a?: number
    readonly top_k?: number
  }

/** The same for Responses. */
type ResponsesKnown = Pick<
  ResponsesParams,
  | 'background'
  | 'include'
  | 'instructions'
  | 'max_output_tokens'
  | 'max_tool_calls'
  | 'metadata'
  | 'parallel_tool_calls'
  | 'previous_response_id'
  | 'prompt'
  | 'safety_identifier'
  | 'temperature'
  | 'text'
  | 'tool_choice'
  | 'tools'
  | 'top_logprobs'
  | 'top_p'
  | 'truncation'
  | 'user'
> &
  Routing & {
    readonly frequency_penalty?: number
    readonly presence_penalty?: number
    readonly store?: false
    readonly reasoning?: {
      readonly effort?: Effort
      readonly summary?: 'auto' | 'concise' | 'detailed'
      readonly max_tokens?: number
      readonly enabled?: boolean
    }
    readonly top_k?: number
  }

type Effort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/** What both APIs have beyond OpenAI's. */
type Routing = {
  readonly cache_control?: { readonly type: 'ephemeral'; readonly ttl?: '5m' | '1h' }
  readonly debug?: object
  readonly image_config?: object
  readonly modalities?: readonly ('text' | 'image' | 'audio')[]
  readonly models?: readonly string[]
  readonly plugins?: readonly object[]
  readonly prompt_cache_key?: string
  readonly prompt_cache_options?: object
  /** Which upstream providers may answer, in which order and at which price. */
  readonly provider?: object
  readonly service_tier?: 'auto' | 'default' | 'fast' | 'flex' | 'priority' | 'scale'
  readonly session_id?: string
  readonly stop_server_tools_when?: readonly object[]
  readonly trace?: object
}

/**
 * OpenRouter, through Chat Completions; pass `{ api: 'responses' }` after the model id to use Responses.
 *
 * - `reasoning_details` (with signatures) and `annotations` (of parsed files) are kept in
 *   `message.metadata.openrouter` and sent back.
 * - Routing goes in `params`: `models`, `provider`, `plugins`, `transforms`.
 * - `usage.costUsd` is the amount that OpenRouter charged.
 *
 * Request bodies are compared with those of `@openrouter/sdk 1.3.19` (docs/vendor-bodies.md).
 */
export const openrouter: TwoApis<ChatKnown, ResponsesKnown, 'chat'> = defineVendor({
  name: 'openrouter',
  baseUrl: 'https://openrouter.ai/api/v1',
  keyVariables: ['OPENROUTER_API_KEY'],
  llm: chooseApi('openrouter', { chat, responses: openResponses }, 'chat'),
  embedding: openrouterEmbeddings(),
  image: openrouterImages(),
})

export default openrouter
