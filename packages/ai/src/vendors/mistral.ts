import { acceptedByMistral } from '../catalog/accepted/mistral.ts'
import { mistralEmbeddings } from '../embeddings/openai.ts'
import { defineVendor, type Vendor } from './define-vendor.ts'
import { chatCompletions } from './openai-family.ts'
import type { ChatParams } from './openai.ts'

/** Known parameters, by the names of `@mistralai/mistralai 2.7.0`. */
type MistralParams = Pick<
  ChatParams,
  | 'frequency_penalty'
  | 'max_tokens'
  | 'n'
  | 'parallel_tool_calls'
  | 'presence_penalty'
  | 'response_format'
  | 'stop'
  | 'temperature'
  | 'tools'
  | 'top_p'
> & {
  readonly guardrails?: readonly object[]
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly prediction?: { readonly type: 'content'; readonly content: string }
  readonly prompt_cache_key?: string
  readonly prompt_mode?: 'reasoning'
  readonly random_seed?: number
  readonly reasoning_effort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh'
  readonly safe_prompt?: boolean
  readonly service_tier?: 'auto' | 'standard_only'
  readonly tool_choice?: 'auto' | 'none' | 'any' | 'required' | object
}

/** Models of the catalog. */
type ModelId =
  | 'mistral-large-2512'
  | 'mistral-medium-3-5'
  | 'mistral-medium-2508'
  | 'mistral-small-2603'
  | 'magistral-medium'
  | 'magistral-small'
  | 'ministral-14b-2512'
  | 'ministral-8b-2512'
  | 'ministral-3b-2512'
  | 'codestral-2508'
  | 'devstral-2512'
  | 'devstral-medium-2507'
  | 'devstral-small-2507'
  | 'voxtral-mini-2602'
  | 'voxtral-small-24b-2507'
  | 'pixtral-large'
  | 'mistral-nemo'
  | 'mistral-embed'

/**
 * Mistral. It accepts only tool-call ids of nine letters or digits, so other ids are mapped. It sends
 * usage with the last chunk without being asked, and rejects unknown fields.
 *
 * Request bodies are compared with those of `@mistralai/mistralai 2.7.0` (docs/vendor-bodies.md).
 */
export const mistral: Vendor<MistralParams, ModelId> = defineVendor({
  name: 'mistral',
  baseUrl: 'https://api.mistral.ai/v1',
  keyVariables: ['MISTRAL_API_KEY'],
  llm: chatCompletions({
    streamUsage: false,
    documentUrl: 'document_url',
    audio: 'base64',
    reasoning: 'thinking',
    parameters: { maxTokens: 'max_tokens', seed: 'random_seed', reasoning: 'effort' },
    accepts: acceptedByMistral,
    toolCallId: { pattern: /^[a-zA-Z0-9]{9}$/, maxLength: 9 },
  }),
  embedding: mistralEmbeddings(),
})

export default mistral
