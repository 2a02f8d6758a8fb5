import { mistralEmbeddings } from '../embeddings/openai.ts'
import type { Provider } from '../contract/provider.ts'
import { defineVendor } from './define-vendor.ts'
import { chatCompletions } from './openai-family.ts'

/**
 * Mistral. It accepts only tool-call ids of nine letters or digits, so other ids are mapped. It sends
 * usage with the last chunk without being asked, and rejects unknown fields.
 *
 * Request bodies are compared with those of `@mistralai/mistralai 2.7.0` (docs/vendor-bodies.md).
 */
export const mistral: Provider = defineVendor({
  name: 'mistral',
  baseUrl: 'https://api.mistral.ai/v1',
  keyVariables: ['MISTRAL_API_KEY'],
  llm: chatCompletions({
    streamUsage: false,
    documentUrl: 'document_url',
    audio: 'base64',
    reasoning: 'thinking',
    parameters: { maxTokens: 'max_tokens', seed: 'random_seed', reasoning: 'none' },
    toolCallId: { pattern: /^[a-zA-Z0-9]{9}$/, maxLength: 9 },
  }),
  embedding: mistralEmbeddings(),
})

export default mistral
