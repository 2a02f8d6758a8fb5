import type { Provider } from '../contract/provider.ts'
import { defineVendor } from './define-vendor.ts'
import { chatCompletions } from './openai-family.ts'

/**
 * DeepSeek, text only. Its API requires earlier reasoning to be sent back while tools are used, so it
 * is sent. Its JSON mode accepts no schema: with `structure` the schema is put in the system prompt,
 * and a warning says that it is not enforced.
 *
 * The facts are those of `@ai-sdk/deepseek 3.0.56`; DeepSeek has no SDK of its own.
 */
export const deepseek: Provider = defineVendor({
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
