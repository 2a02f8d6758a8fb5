import type { Provider } from '../contract/provider.ts'
import { openaiParameters } from '../wires/settings.ts'
import { defineVendor } from './define-vendor.ts'
import { chatCompletions } from './openai-family.ts'

/**
 * Cerebras: fast inference of open models, text only.
 */
export const cerebras: Provider = defineVendor({
  name: 'cerebras',
  baseUrl: 'https://api.cerebras.ai/v1',
  keyVariables: ['CEREBRAS_API_KEY'],
  llm: chatCompletions({ media: [], parameters: openaiParameters }),
})

export default cerebras
