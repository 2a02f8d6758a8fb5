import { openaiEmbeddings } from '../embeddings/openai.ts'
import { openaiImages } from '../images/openai.ts'
import type { Provider } from '../contract/provider.ts'
import { defineVendor } from './define-vendor.ts'
import { chatCompletions, chooseApi, responses } from './openai-family.ts'

/** Chat Completions refuses longer ids of tool calls. */
const chat = chatCompletions({ toolCallId: { pattern: /^[^]+$/, maxLength: 40 } })

/**
 * OpenAI, through Responses; `openai('gpt-4o', { api: 'chat' })` takes Chat Completions instead.
 *
 * - Nothing is imposed: for stateless use set `params: { store: false, include:
 *   ['reasoning.encrypted_content'] }`; reasoning then travels in the messages.
 * - `strict` is set for structured output when the schema meets its conditions as it stands, and
 *   for a tool when its metadata asks for it: `metadata: { openai: { strict: true } }`.
 * - A tool with `metadata: { openai: { type: 'custom' } }` takes free text, as `{ input }`.
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
