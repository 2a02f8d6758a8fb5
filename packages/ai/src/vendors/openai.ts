import { openaiEmbeddings } from '../embeddings/openai.ts'
import { openaiImages } from '../images/openai.ts'
import { openaiParameters } from '../wires/settings.ts'
import { defineVendor } from './define-vendor.ts'
import {
  chatCompletions,
  chooseApi,
  type OpenAIParams,
  responses,
  type TwoApis,
} from './openai-family.ts'

/** Chat Completions rejects tool-call ids longer than 40 characters. */
const chat = chatCompletions({
  toolCallId: { pattern: /^[^]+$/, maxLength: 40 },
  parameters: openaiParameters,
})

/** The language models of `openai 7.53.0`, without snapshots of a day. */
type ModelId =
  | 'gpt-6.1-sol'
  | 'gpt-6.1-terra'
  | 'gpt-6-astra'
  | 'gpt-6-sol'
  | 'gpt-6-luna'
  | 'gpt-5.6-sol'
  | 'gpt-5.6-terra'
  | 'gpt-5.6-luna'
  | 'gpt-5.5'
  | 'gpt-5.5-pro'
  | 'gpt-5.4'
  | 'gpt-5.4-mini'
  | 'gpt-5.4-nano'
  | 'gpt-5.3-chat-latest'
  | 'gpt-5.2'
  | 'gpt-5.2-pro'
  | 'gpt-5.2-chat-latest'
  | 'gpt-5.1'
  | 'gpt-5.1-mini'
  | 'gpt-5.1-codex'
  | 'gpt-5.1-codex-max'
  | 'gpt-5.1-chat-latest'
  | 'gpt-5'
  | 'gpt-5-mini'
  | 'gpt-5-nano'
  | 'gpt-5-pro'
  | 'gpt-5-codex'
  | 'gpt-5-chat-latest'
  | 'gpt-4.1'
  | 'gpt-4.1-mini'
  | 'gpt-4.1-nano'
  | 'gpt-4o'
  | 'gpt-4o-mini'
  | 'o4-mini'
  | 'o4-mini-deep-research'
  | 'o3'
  | 'o3-mini'
  | 'o3-pro'
  | 'o3-deep-research'
  | 'o1'
  | 'o1-pro'
  | 'computer-use-preview'

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
export const openai: TwoApis<OpenAIParams, 'responses', ModelId> = defineVendor({
  name: 'openai',
  baseUrl: 'https://api.openai.com/v1',
  keyVariables: ['OPENAI_API_KEY'],
  llm: chooseApi('openai', { chat, responses: responses() }, 'responses'),
  embedding: openaiEmbeddings(),
  image: openaiImages(),
})

export default openai
