import type { Provider } from '../contract/provider.ts'
import { defineVendor } from './define-vendor.ts'
import { chatCompletions } from './openai-family.ts'

/**
 * Moonshot (Kimi). Its thinking models require their earlier reasoning to be sent back.
 *
 * The facts are those of `@ai-sdk/moonshotai 3.0.60`; Moonshot has no SDK of its own.
 */
export const moonshot: Provider = defineVendor({
  name: 'moonshot',
  baseUrl: 'https://api.moonshot.ai/v1',
  keyVariables: ['MOONSHOT_API_KEY'],
  llm: chatCompletions({
    media: ['image', 'video'],
    reasoning: 'reasoning_content',
    parameters: { maxTokens: 'max_tokens', seed: 'seed', reasoning: 'thinking' },
  }),
})

export default moonshot
