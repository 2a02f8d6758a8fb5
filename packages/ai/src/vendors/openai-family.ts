import { ErrorCode, UPPError } from '../contract/error.ts'
import type { LLMCapabilities, ModelReference, Provider } from '../contract/provider.ts'
import { chatDialect, type OpenAIChatDialect } from '../wires/openai-chat/types.ts'
import { openaiChat } from '../wires/openai-chat/wire.ts'
import { responsesDialect, type OpenAIResponsesDialect } from '../wires/openai-responses/types.ts'
import { openaiResponses } from '../wires/openai-responses/wire.ts'
import type { OtherId, VendorLLM } from './define-vendor.ts'

/**
 * Returns the Chat Completions wire with a vendor's deviations; its `media` decides the input
 * capabilities.
 */
export function chatCompletions(
  deviations: Partial<OpenAIChatDialect> = {},
  capabilities: Partial<LLMCapabilities> = {},
): VendorLLM<OpenAIChatDialect> {
  const dialect = { ...chatDialect, ...deviations }
  return {
    wire: openaiChat,
    dialect,
    capabilities: { ...capabilitiesOf(dialect.media), ...capabilities },
  }
}

/** Returns the Responses wire with a vendor's deviations. */
export function responses(
  deviations: Partial<OpenAIResponsesDialect> = {},
): VendorLLM<OpenAIResponsesDialect> {
  const dialect = { ...responsesDialect, ...deviations }
  return { wire: openaiResponses, dialect, capabilities: capabilitiesOf(dialect.media) }
}

function capabilitiesOf(media: readonly string[]): LLMCapabilities {
  return {
    streaming: true,
    tools: true,
    structuredOutput: true,
    imageInput: media.includes('image'),
    documentInput: media.includes('document'),
    videoInput: media.includes('video'),
    audioInput: media.includes('audio'),
  }
}

/** The two APIs between which callers can choose. */
export interface Apis {
  readonly chat: VendorLLM
  readonly responses: VendorLLM
}

/**
 * Returns a function that chooses the API named in a model reference:
 * `openai('gpt-4o', { api: 'chat' })`.
 */
export function chooseApi(
  provider: string,
  apis: Apis,
  byDefault: keyof Apis,
): (reference: ModelReference) => VendorLLM {
  return ({ modelId, options }) => {
    const api = options?.['api'] ?? byDefault
    if (api === 'chat' || api === 'responses') return apis[api]
    throw new UPPError(`The model "${modelId}" asks for the API ${JSON.stringify(api)}.`, {
      code: ErrorCode.InvalidRequest,
      provider,
      modality: 'llm',
      hint: 'Known: "responses" and "chat".',
    })
  }
}

/** A vendor with both APIs; the one that is chosen, or else `Default`, decides the parameters. */
export type TwoApis<
  Known extends Readonly<Record<keyof Apis, object>>,
  Default extends keyof Apis,
  Ids extends string = never,
> = Pick<Provider, 'name' | 'handlers'> &
  (<Api extends keyof Apis = Default>(
    modelId: Ids | OtherId,
    options?: { readonly api?: Api },
  ) => ModelReference<Known[Api]>)

// The parameters of vendors are aliases and not interfaces: where a user's package exports a model and writes
// declarations, they are written out, so they need not be public names.

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

/** How much OpenAI's models think, from least to most. */
export type OpenAIEffort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'

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
  readonly reasoning_effort?: OpenAIEffort
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
    readonly effort?: OpenAIEffort
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

/** Known parameters of OpenAI's two APIs, which Azure shares. */
export type OpenAIParams = {
  readonly chat: OpenAIChatParams
  readonly responses: ResponsesParams
}
