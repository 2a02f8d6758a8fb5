import { acceptedByOpenAI } from '../catalog/accepted/openai.ts'
import { openaiEmbeddings } from '../embeddings/openai.ts'
import { openaiImages } from '../images/openai.ts'
import type { ModelReference, Provider } from '../contract/provider.ts'
import { openaiParameters } from '../wires/openai-chat/settings.ts'
import { defineVendor } from './define-vendor.ts'
import { chatCompletions, chooseApi, responses } from './openai-family.ts'

/** Chat Completions rejects tool-call ids longer than 40 characters. */
const chat = chatCompletions({
  toolCallId: { pattern: /^[^]+$/, maxLength: 40 },
  audioFormats: ['wav', 'mp3'],
  parameters: openaiParameters,
  accepts: acceptedByOpenAI,
})

/** The language models of `openai 7.55.0`, without dated ids such as `gpt-4o-2024-08-06`. */
type ModelId =
  | 'gpt-6.1-sol'
  | 'gpt-6.1-terra'
  | 'gpt-6-astra'
  | 'gpt-6-sol'
  | 'gpt-6-luna'
  | 'gpt-5.6-sol'
  | 'gpt-5.6-terra'
  | 'gpt-5.6-luna'
  | 'gpt-5.5'
  | 'gpt-5.5-pro'
  | 'gpt-5.4'
  | 'gpt-5.4-mini'
  | 'gpt-5.4-nano'
  | 'gpt-5.3-chat-latest'
  | 'gpt-5.2'
  | 'gpt-5.2-pro'
  | 'gpt-5.2-chat-latest'
  | 'gpt-5.1'
  | 'gpt-5.1-mini'
  | 'gpt-5.1-codex'
  | 'gpt-5.1-codex-max'
  | 'gpt-5.1-chat-latest'
  | 'gpt-5'
  | 'gpt-5-mini'
  | 'gpt-5-nano'
  | 'gpt-5-pro'
  | 'gpt-5-codex'
  | 'gpt-5-chat-latest'
  | 'gpt-4.1'
  | 'gpt-4.1-mini'
  | 'gpt-4.1-nano'
  | 'gpt-4o'
  | 'gpt-4o-mini'
  | 'o4-mini'
  | 'o4-mini-deep-research'
  | 'o3'
  | 'o3-mini'
  | 'o3-pro'
  | 'o3-deep-research'
  | 'o1'
  | 'o1-pro'
  | 'computer-use-preview'

/**
 * OpenAI, through Responses; `openai('gpt-4o', { api: 'chat' })` uses Chat Completions instead.
 *
 * - No parameter is set for you. For stateless use set `params: { store: false, include:
 *   ['reasoning.encrypted_content'] }`; reasoning is then kept in the messages.
 * - `strict` is set for structured output if the schema can be rewritten for strict mode (otherwise the turn has
 *   a warning), and for a tool when its metadata asks for it: `metadata: { openai: { strict: true } }`.
 * - A tool with `metadata: { openai: { type: 'custom' } }` receives free text, as `{ input }`.
 *
 * Request bodies are compared with those of `openai 7.55.0` (docs/vendor-bodies.md).
 */
export const openai: TwoApis<OpenAIChatParams, ResponsesParams, 'responses', ModelId> =
  defineVendor({
    name: 'openai',
    baseUrl: 'https://api.openai.com/v1',
    keyVariables: ['OPENAI_API_KEY'],
    llm: chooseApi(
      'openai',
      { chat, responses: responses({ accepts: acceptedByOpenAI }) },
      'responses',
    ),
    embedding: openaiEmbeddings(),
    image: openaiImages(),
  })

export default openai

// The types below are exported because declaration files of users' packages name them, e.g. for `openai('gpt-5')`.

/** A vendor with two APIs. The API that is chosen, or else `Default`, decides the known parameters. */
export type TwoApis<
  Chat,
  Responses,
  Default extends 'chat' | 'responses',
  Ids extends string = never,
> = Pick<Provider, 'name' | 'handlers'> &
  (<Api extends 'chat' | 'responses' = Default>(
    modelId: Ids | (string & {}),
    options?: { readonly api?: Api },
  ) => ModelReference<{ chat: Chat; responses: Responses }[Api]>)

/** Known parameters of Chat Completions that its servers have in common. */
export type ChatParams = {
  readonly frequency_penalty?: number
  readonly logit_bias?: Readonly<Record<string, number>>
  readonly logprobs?: boolean
  readonly max_tokens?: number
  readonly metadata?: Readonly<Record<string, string>>
  readonly n?: number
  readonly parallel_tool_calls?: boolean
  readonly presence_penalty?: number
  readonly response_format?: object
  readonly seed?: number
  readonly stop?: string | readonly string[]
  readonly stream_options?: { readonly include_usage?: boolean }
  readonly temperature?: number
  readonly tool_choice?: 'none' | 'auto' | 'required' | object
  /** Tools that the vendor runs itself; the tools of `llm` are added to them. */
  readonly tools?: readonly object[]
  readonly top_logprobs?: number
  readonly top_p?: number
  readonly user?: string
}

/** Known parameters of OpenAI's Chat Completions. */
export type OpenAIChatParams = Omit<ChatParams, 'stream_options'> & {
  readonly audio?: {
    readonly format: 'wav' | 'aac' | 'mp3' | 'flac' | 'opus' | 'pcm16'
    readonly voice: string | { readonly id: string }
  }
  readonly function_call?: 'none' | 'auto' | { readonly name: string }
  readonly functions?: readonly object[]
  readonly max_completion_tokens?: number
  readonly modalities?: readonly ('text' | 'audio')[]
  readonly moderation?: { readonly model: string; readonly policy?: object }
  readonly prediction?: { readonly type: 'content'; readonly content: string | readonly object[] }
  readonly prompt_cache_key?: string
  readonly prompt_cache_options?: {
    readonly mode?: 'implicit' | 'explicit'
    readonly ttl?: '30m'
  }
  readonly prompt_cache_retention?: 'in_memory' | '24h'
  readonly reasoning_effort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'
  readonly safety_identifier?: string
  readonly service_tier?: 'auto' | 'default' | 'flex' | 'scale' | 'priority' | 'fast'
  readonly store?: boolean
  readonly stream_options?: {
    readonly include_usage?: boolean
    readonly include_obfuscation?: boolean
  }
  readonly verbosity?: 'low' | 'medium' | 'high'
  readonly web_search_options?: {
    readonly search_context_size?: 'low' | 'medium' | 'high'
    readonly user_location?: object
  }
}

/** Known parameters of OpenAI's Responses. */
export type ResponsesParams = {
  readonly access_programs?: object
  readonly background?: boolean
  readonly context_management?: readonly {
    readonly type: string
    readonly compact_threshold?: number
  }[]
  readonly conversation?: string | { readonly id: string }
  readonly image?: { readonly context_compression?: 'auto' | 'enabled' | 'disabled' }
  readonly include?: readonly (
    | 'file_search_call.results'
    | 'web_search_call.results'
    | 'web_search_call.action.sources'
    | 'message.input_image.image_url'
    | 'computer_call_output.output.image_url'
    | 'code_interpreter_call.outputs'
    | 'reasoning.encrypted_content'
    | 'message.output_text.logprobs'
  )[]
  readonly instructions?: string
  readonly max_output_tokens?: number
  readonly max_tool_calls?: number
  readonly metadata?: Readonly<Record<string, string>>
  readonly moderation?: { readonly model: string; readonly policy?: object }
  readonly parallel_tool_calls?: boolean
  readonly previous_response_id?: string
  readonly prompt?: {
    readonly id: string
    readonly version?: string
    readonly variables?: Readonly<Record<string, unknown>>
  }
  readonly prompt_cache_key?: string
  readonly prompt_cache_options?: {
    readonly comparison_response_id?: string
    readonly mode?: 'implicit' | 'explicit'
    readonly prewarm?: boolean
    readonly ttl?: '30m' | '12h'
  }
  readonly prompt_cache_retention?: 'in_memory' | '24h'
  readonly reasoning?: {
    readonly context?: 'auto' | 'current_turn' | 'all_turns'
    readonly effort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'
    readonly generate_summary?: 'auto' | 'concise' | 'detailed'
    readonly mode?: 'standard' | 'pro'
    readonly summary?: 'auto' | 'concise' | 'detailed'
  }
  readonly safety_identifier?: string
  readonly service_tier?: 'auto' | 'default' | 'flex' | 'scale' | 'priority' | 'fast' | 'ultrafast'
  readonly store?: boolean
  readonly stream_options?: { readonly include_obfuscation?: boolean }
  readonly temperature?: number
  readonly text?: {
    readonly format?: object
    readonly verbosity?: 'low' | 'medium' | 'high'
  }
  readonly tool_choice?: 'none' | 'auto' | 'required' | object
  /** Tools that the vendor runs itself; the tools of `llm` are added to them. */
  readonly tools?: readonly object[]
  readonly top_logprobs?: number
  readonly top_p?: number
  readonly truncation?: 'auto' | 'disabled'
  readonly user?: string
}
