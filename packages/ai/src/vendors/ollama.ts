import type { JsonObject } from '@skein/base'
import type { EmbeddingHandler } from '../embedding.ts'
import { httpEmbedding, type EmbeddingWire } from '../embeddings/http-embedding.ts'
import type { VendorEndpoint } from '../transport/endpoint.ts'
import { decodeError } from '../wires/ollama-chat/error.ts'
import { ollamaChat } from '../wires/ollama-chat/wire.ts'
import { countOf, listOf, without } from '../wires/read-json.ts'
import { defineVendor, type Vendor } from './define-vendor.ts'

/** Known parameters, by the names of `ollama 0.6.4`. */
type OllamaParams = {
  readonly format?: string | object
  readonly keep_alive?: string | number
  readonly logprobs?: boolean
  readonly options?: OllamaOptions
  readonly think?: boolean | 'high' | 'medium' | 'low'
  readonly tools?: readonly object[]
  readonly top_logprobs?: number
}

/** Options of the model's runner. */
type OllamaOptions = {
  readonly embedding_only?: boolean
  readonly f16_kv?: boolean
  readonly frequency_penalty?: number
  readonly logits_all?: boolean
  readonly low_vram?: boolean
  readonly main_gpu?: number
  readonly min_p?: number
  readonly mirostat?: number
  readonly mirostat_eta?: number
  readonly mirostat_tau?: number
  readonly num_batch?: number
  readonly num_ctx?: number
  readonly num_gpu?: number
  readonly num_keep?: number
  readonly num_predict?: number
  readonly num_thread?: number
  readonly numa?: boolean
  readonly penalize_newline?: boolean
  readonly presence_penalty?: number
  readonly repeat_last_n?: number
  readonly repeat_penalty?: number
  readonly seed?: number
  readonly temperature?: number
  readonly tfs_z?: number
  readonly top_k?: number
  readonly top_p?: number
  readonly typical_p?: number
  readonly use_mlock?: boolean
  readonly use_mmap?: boolean
  readonly vocab_only?: boolean
  readonly stop?: readonly string[]
}

/** Ollama's `/embed`. Ollama has no limit; inputs are sent in batches to keep a local server responsive. */
function ollamaEmbeddings(): (endpoint: VendorEndpoint) => EmbeddingHandler {
  return (endpoint) => httpEmbedding(endpoint, embeddingWire)
}

const listField = new Set(['embeddings'])

const embeddingWire: EmbeddingWire = {
  maxBatchSize: 256,
  imageInput: false,
  encode: ({ inputs, params }, modelId) => ({
    path: '/embed',
    body: {
      model: modelId,
      // `checkInputs` has already rejected images.
      input: inputs.map((input) =>
        typeof input === 'string' ? input : 'text' in input ? String(input.text) : '',
      ),
      ...(params as JsonObject), // unchanged (UPP §2.1); non-JSON values fail when the body is written
    },
  }),
  decode: (body) => ({
    vectors: listOf(body['embeddings']).map((vector) => ({ vector })),
    totalTokens: countOf(body['prompt_eval_count']),
    metadata: without(body, listField),
  }),
  decodeError,
}

/**
 * Ollama on this machine, or elsewhere with `config.baseUrl` (e.g. `https://ollama.com/api`, which
 * needs a key in `config.apiKey`).
 *
 * - `params` go to the top of the body: `think`, `keep_alive`, `format`, `logprobs`, …; sampling
 *   options belong inside `params.options`, as the API has them.
 * - Images are sent as data; an image given by URL is rejected with INVALID_REQUEST.
 *
 * Request bodies are compared with those of `ollama 0.6.4` (docs/vendor-bodies.md).
 */
export const ollama: Vendor<OllamaParams> = defineVendor({
  name: 'ollama',
  baseUrl: 'http://127.0.0.1:11434/api',
  keyVariables: [],
  llm: {
    wire: ollamaChat,
    dialect: {},
    capabilities: {
      streaming: true,
      tools: true,
      structuredOutput: true,
      imageInput: true,
      documentInput: false,
      videoInput: false,
      audioInput: false,
    },
  },
  embedding: ollamaEmbeddings(),
})

export default ollama
