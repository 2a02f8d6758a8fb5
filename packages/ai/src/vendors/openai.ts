import { openaiEmbeddings } from '../embeddings/openai.ts'
import { openaiImages } from '../images/openai.ts'
import type { Provider } from '../contract/provider.ts'
import { openaiParameters } from '../wires/settings.ts'
import { defineVendor } from './define-vendor.ts'
import { chatCompletions, chooseApi, responses } from './openai-family.ts'

/** Chat Completions rejects tool-call ids longer than 40 characters. */
const chat = chatCompletions({
  toolCallId: { pattern: /^[^]+$/, maxLength: 40 },
  parameters: openaiParameters,
})

/**
 * OpenAI, through Responses; `openai('gpt-4o', { api: 'chat' })` uses Chat Completions instead.
 *
 * - No parameter is set for you. For stateless use set `params: { store: false, include:
 *   ['reasoning.encrypted_content'] }`; reasoning is then kept in the messages.
 * - `strict` is set for structured output when the unchanged schema meets the conditions of strict mode,
 *   and for a tool when its metadata asks for it: `metadata: { openai: { strict: true } }`.
 * - A tool with `metadata: { openai: { type: 'custom' } }` receives free text, as `{ input }`.
 *
 * Request bodies are compared with those of `openai 7.53.0` (docs/vendor-bodies.md).
 */
export const openai: Provider = defineVendor({
  name: 'openai',
  baseUrl: 'https://api.openai.com/v1',
  keyVariables: ['OPENAI_API_KEY'],
  llm: chooseApi('openai', { chat, responses: responses() }, 'responses'),
  embedding: openaiEmbeddings(),
  image: openaiImages(),
})

export default openai
