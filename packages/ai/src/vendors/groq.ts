import { openaiParameters } from '../wires/openai-chat/settings.ts'
import { defineVendor, type Vendor } from './define-vendor.ts'
import { chatCompletions } from './openai-family.ts'
import type { ChatParams } from './openai.ts'

/** Known parameters, by the names of `groq-sdk 1.6.0`. */
type GroqParams = Omit<ChatParams, 'stream_options'> & {
  readonly citation_options?: 'enabled' | 'disabled'
  readonly compound_custom?: object
  readonly disable_tool_validation?: boolean
  readonly documents?: readonly object[]
  readonly exclude_domains?: readonly string[]
  readonly function_call?: 'none' | 'auto' | 'required' | { readonly name: string }
  readonly functions?: readonly object[]
  readonly include_domains?: readonly string[]
  readonly include_reasoning?: boolean
  readonly max_completion_tokens?: number
  readonly reasoning_effort?: 'none' | 'default' | 'low' | 'medium' | 'high'
  readonly reasoning_format?: 'hidden' | 'raw' | 'parsed'
  readonly search_settings?: object
  readonly service_tier?: 'auto' | 'on_demand' | 'flex' | 'performance'
  readonly store?: boolean
}

/** Groq's language models, by the names in the same SDK. */
type ModelId =
  | 'compound-beta'
  | 'compound-beta-mini'
  | 'llama-3.1-8b-instant'
  | 'llama-3.3-70b-versatile'
  | 'meta-llama/llama-4-maverick-17b-128e-instruct'
  | 'meta-llama/llama-4-scout-17b-16e-instruct'
  | 'moonshotai/kimi-k2-instruct'
  | 'openai/gpt-oss-120b'
  | 'openai/gpt-oss-20b'
  | 'qwen/qwen3-32b'
  | 'qwen/qwen3.6-27b'
  | 'qwen/qwen3.8-27b'

/**
 * Groq: fast inference of open models. Reasoning arrives in `reasoning` if `params` request it
 * (`reasoning_format: 'parsed'`); tools that Groq ran are in `message.metadata.groq.executed_tools`.
 *
 * Request bodies are compared with those of `groq-sdk 1.6.0` (docs/vendor-bodies.md).
 */
export const groq: Vendor<GroqParams, ModelId> = defineVendor({
  name: 'groq',
  baseUrl: 'https://api.groq.com/openai/v1',
  keyVariables: ['GROQ_API_KEY'],
  llm: chatCompletions({ media: ['image'], parameters: openaiParameters }),
})

export default groq
