import { openaiParameters } from '../wires/openai-chat/settings.ts'
import { defineVendor, type Vendor } from './define-vendor.ts'
import { chatCompletions } from './openai-family.ts'
import type { ChatParams } from './openai.ts'

/** Known parameters, by the names of `@cerebras/cerebras_cloud_sdk 1.91.0`. */
type CerebrasParams = Omit<ChatParams, 'metadata'> & {
  readonly clear_thinking?: boolean
  readonly disable_reasoning?: boolean
  readonly max_completion_tokens?: number
  readonly min_completion_tokens?: number
  readonly min_tokens?: number
  readonly model_parameters?: Readonly<Record<string, unknown>>
  readonly prediction?: { readonly type: 'content'; readonly content: string | readonly object[] }
  readonly prompt_cache_key?: string
  readonly reasoning_effort?: 'none' | 'low' | 'medium' | 'high'
  readonly reasoning_format?: 'none' | 'parsed' | 'text_parsed' | 'raw' | 'hidden'
  readonly service_tier?: 'auto' | 'default' | 'flex' | 'priority'
}

/** Models of the catalog. */
type ModelId =
  | 'gpt-oss-120b'
  | 'zai-glm-4.7'
  | 'gemma-4-31b'
  | 'qwen-3-235b-a22b-instruct-2507'
  | 'qwen-3-32b'
  | 'llama-3.3-70b'
  | 'llama3.1-8b'

/**
 * Cerebras: fast inference of open models, some of which read images.
 *
 * Address, parameters and model ids are those of the types in `@cerebras/cerebras_cloud_sdk 1.91.0`.
 */
export const cerebras: Vendor<CerebrasParams, ModelId> = defineVendor({
  name: 'cerebras',
  baseUrl: 'https://api.cerebras.ai/v1',
  keyVariables: ['CEREBRAS_API_KEY'],
  llm: chatCompletions({ media: ['image'], parameters: openaiParameters }),
})

export default cerebras
