import { defineVendor, type Vendor } from './define-vendor.ts'
import { chatCompletions } from './openai-family.ts'
import type { ChatParams } from './openai.ts'

/** Known parameters: those of Chat Completions, and those that `@ai-sdk/deepseek 2.0.69` sends. */
type DeepseekParams = ChatParams & {
  readonly reasoning_effort?: 'low' | 'medium' | 'high' | 'xhigh' | 'max'
  readonly thinking?: { readonly type: 'adaptive' | 'enabled' | 'disabled' }
  readonly user_id?: string
}

/** Models of the catalog. */
type ModelId =
  'deepseek-v4-pro' | 'deepseek-v4-flash' | 'deepseek-v3.2' | 'deepseek-chat' | 'deepseek-reasoner'

/**
 * DeepSeek, text only. Its API requires earlier reasoning to be sent back while tools are used, so reasoning
 * is sent back. Its JSON mode accepts no schema: with `structure` the schema is put in the system prompt, and
 * a warning says that it is not enforced.
 *
 * Everything here is taken from `@ai-sdk/deepseek 3.0.56`, because DeepSeek has no SDK of its own.
 */
export const deepseek: Vendor<DeepseekParams, ModelId> = defineVendor({
  name: 'deepseek',
  baseUrl: 'https://api.deepseek.com/v1',
  keyVariables: ['DEEPSEEK_API_KEY'],
  llm: chatCompletions({
    media: [],
    structuredOutput: 'json_object',
    reasoning: 'reasoning_content',
    parameters: { maxTokens: 'max_tokens', seed: 'seed', reasoning: 'thinking' },
  }),
})

export default deepseek
