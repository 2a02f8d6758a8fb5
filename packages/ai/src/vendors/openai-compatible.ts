import { openaiEmbeddings } from '../embeddings/openai.ts'
import type { LLMCapabilities, Params, Provider } from '../contract/provider.ts'
import type { OpenAIChatDialect } from '../wires/openai-chat/dialect.ts'
import { defineVendor } from './define-vendor.ts'
import { chatCompletions } from './openai-family.ts'

/** The settings of `openaiCompatible`. */
interface OpenAICompatibleOptions {
  /** The provider name, as used in errors and as the namespace of metadata. */
  readonly name: string
  /** The address with its version prefix, e.g. `http://127.0.0.1:8000/v1`. */
  readonly baseUrl: string
  /** The environment variable with the key. Default: no key is needed. */
  readonly keyVariable?: string
  /** Headers sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
  /** The server's differences from OpenAI's Chat Completions. */
  readonly dialect?: Partial<OpenAIChatDialect>
  /** Overrides the capabilities that follow from `dialect.media`. */
  readonly capabilities?: Partial<LLMCapabilities>
}

/**
 * Makes a provider for any server with Chat Completions: vLLM, llama.cpp, LM Studio, Together …
 *
 *     const local = openaiCompatible({ name: 'local', baseUrl: 'http://127.0.0.1:8000/v1' })
 *     llm({ model: local('my-model') })
 *
 * The format is that of Chat Completions in `openai 7.55.0`; `dialect` names what a server does differently.
 */
export function openaiCompatible(options: OpenAICompatibleOptions): Provider<Params> {
  const { name, baseUrl, keyVariable, headers, dialect, capabilities } = options
  return defineVendor({
    name,
    baseUrl,
    keyVariables: keyVariable === undefined ? [] : [keyVariable],
    headers,
    llm: chatCompletions(dialect, capabilities),
    embedding: openaiEmbeddings(),
  })
}

export default openaiCompatible
