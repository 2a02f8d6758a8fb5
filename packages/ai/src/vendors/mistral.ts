import { mistralEmbeddings } from '../embeddings/openai.ts'
import type { Provider } from '../contract/provider.ts'
import { defineVendor } from './define-vendor.ts'
import { chatCompletions } from './openai-family.ts'

/**
 * Mistral. Ids of tool calls have nine letters or digits there, so foreign ones are mapped; usage
 * comes with the last chunk unasked, and fields it does not know are refused.
 */
export const mistral: Provider = defineVendor({
  name: 'mistral',
  baseUrl: 'https://api.mistral.ai/v1',
  keyVariables: ['MISTRAL_API_KEY'],
  llm: chatCompletions({
    streamUsage: false,
    documentUrl: 'document_url',
    reasoning: 'thinking',
    toolCallId: { pattern: /^[a-zA-Z0-9]{9}$/, maxLength: 9 },
  }),
  embedding: mistralEmbeddings(),
})

export default mistral
