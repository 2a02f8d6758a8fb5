import { defineVendor, type Vendor } from './define-vendor.ts'
import { chatCompletions } from './openai-family.ts'
import type { ChatParams } from './openai.ts'

/** Known parameters: those of Chat Completions, and those that `@ai-sdk/moonshotai 2.0.61` sends. */
type MoonshotParams = ChatParams & {
  readonly max_completion_tokens?: number
  readonly prediction?: { readonly type: 'content'; readonly content: string | readonly object[] }
  readonly prompt_cache_key?: string
  readonly reasoning_effort?: 'low' | 'high' | 'max'
  readonly safety_identifier?: string
  readonly thinking?: { readonly type?: 'enabled' | 'disabled'; readonly [option: string]: unknown }
}

/** Models of the catalog. */
type ModelId =
  | 'kimi-k3'
  | 'kimi-k2.7-code'
  | 'kimi-k2.6'
  | 'kimi-k2.5'
  | 'kimi-k2-thinking'
  | 'kimi-k2-thinking-turbo'
  | 'kimi-k2-turbo-preview'
  | 'kimi-k2-0905-preview'
  | 'moonshot-v1-128k'
  | 'moonshot-v1-32k'
  | 'moonshot-v1-8k'

/**
 * Moonshot (Kimi). Its thinking models require their earlier reasoning to be sent back.
 *
 * Everything here is taken from `@ai-sdk/moonshotai 3.0.60`, because Moonshot has no SDK of its own. The
 * limit of the output is `max_completion_tokens`, because the vendor's OpenAPI document
 * (https://platform.kimi.ai/docs/openapi.json, cited by https://github.com/vercel/ai/issues/19556) marks
 * `max_tokens` as deprecated.
 */
export const moonshot: Vendor<MoonshotParams, ModelId> = defineVendor({
  name: 'moonshot',
  baseUrl: 'https://api.moonshot.ai/v1',
  keyVariables: ['MOONSHOT_API_KEY'],
  llm: chatCompletions({
    media: ['image', 'video'],
    reasoning: 'reasoning_content',
    parameters: { maxTokens: 'max_completion_tokens', seed: 'seed', reasoning: 'thinking' },
  }),
})

export default moonshot
