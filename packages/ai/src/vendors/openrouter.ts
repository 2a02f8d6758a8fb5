import { openrouterEmbeddings } from '../embeddings/openai.ts'
import { openrouterImages } from '../images/openrouter.ts'
import type { Provider } from '../contract/provider.ts'
import { defineVendor } from './define-vendor.ts'
import { chatCompletions, chooseApi, responses } from './openai-family.ts'

const chat = chatCompletions({
  media: ['image', 'audio', 'document', 'video'],
  documentUrl: 'file_data',
  reasoning: 'reasoning_details',
  parameters: { maxTokens: 'max_tokens', seed: 'seed', reasoning: 'object' },
  replayFields: ['annotations'],
})

/** OpenRouter's Responses has parts for audio and video, which OpenAI's has not. */
const openResponses = responses({ media: ['image', 'document', 'audio', 'video'] })

/**
 * OpenRouter, through Chat Completions; pass `{ api: 'responses' }` after the model id to use Responses.
 *
 * - `reasoning_details` (with signatures) and `annotations` (of parsed files) are kept in
 *   `message.metadata.openrouter` and sent back.
 * - Routing goes in `params`: `models`, `provider`, `plugins`, `transforms`.
 * - `usage.costUsd` is the amount that OpenRouter charged.
 *
 * Request bodies are compared with those of `@openrouter/sdk 1.3.19` (docs/vendor-bodies.md).
 */
export const openrouter: Provider = defineVendor({
  name: 'openrouter',
  baseUrl: 'https://openrouter.ai/api/v1',
  keyVariables: ['OPENROUTER_API_KEY'],
  llm: chooseApi('openrouter', { chat, responses: openResponses }, 'chat'),
  embedding: openrouterEmbeddings(),
  image: openrouterImages(),
})

export default openrouter
