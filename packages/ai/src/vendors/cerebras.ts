import type { Provider } from '../contract/provider.ts'
import { openaiParameters } from '../wires/settings.ts'
import { defineVendor } from './define-vendor.ts'
import { chatCompletions } from './openai-family.ts'

/**
 * Cerebras: fast inference of open models, some of which read images.
 *
 * The facts are those of the types in `@cerebras/cerebras_cloud_sdk 1.91.0`.
 */
export const cerebras: Provider = defineVendor({
  name: 'cerebras',
  baseUrl: 'https://api.cerebras.ai/v1',
  keyVariables: ['CEREBRAS_API_KEY'],
  llm: chatCompletions({ media: ['image'], parameters: openaiParameters }),
})

export default cerebras
