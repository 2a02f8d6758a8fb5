import { openaiEmbeddings } from '../embeddings/openai.ts'
import type { LLMCapabilities, Provider } from '../contract/provider.ts'
import type { OpenAIChatDialect } from '../wires/openai-chat/dialect.ts'
import { defineVendor } from './define-vendor.ts'
import { chatCompletions } from './openai-family.ts'

/** What `openaiCompatible` has to know about a server. */
export interface OpenAICompatibleOptions {
  /** Provider name: in errors, and the namespace of metadata. */
  readonly name: string
  /** Versioned prefix, e.g. `http://127.0.0.1:8000/v1`. */
  readonly baseUrl: string
  /** Environment variable with the key. Default: none is needed. */
  readonly keyVariable?: string
  /** Always sent. */
  readonly headers?: Readonly<Record<string, string>>
  /** Where the server departs from OpenAI's Chat Completions. */
  readonly dialect?: Partial<OpenAIChatDialect>
  /** What the server cannot do, or more than `dialect.media` says. */
  readonly capabilities?: Partial<LLMCapabilities>
}

/**
 * A provider for any server that speaks Chat Completions: vLLM, llama.cpp, LM Studio, Together …
 *
 *     const local = openaiCompatible({ name: 'local', baseUrl: 'http://127.0.0.1:8000/v1' })
 *     llm({ model: local('my-model') })
 */
export function openaiCompatible(options: OpenAICompatibleOptions): Provider {
  const { name, baseUrl, keyVariable, headers, dialect, capabilities } = options
  return defineVendor({
    name,
    baseUrl,
    keyVariables: keyVariable === undefined ? [] : [keyVariable],
    ...(headers && { headers }),
    llm: chatCompletions(dialect, capabilities),
    embedding: openaiEmbeddings(),
  })
}

export default openaiCompatible
