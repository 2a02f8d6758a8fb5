import type { JsonObject } from '@skein/base'
import type { EmbeddingHandler } from '../embedding.ts'
import type { VendorEndpoint } from '../transport/endpoint.ts'
import { decodeError } from '../wires/ollama-chat/error.ts'
import { countOf, listOf, without } from '../wires/read-json.ts'
import { httpEmbedding, type EmbeddingWire } from './http-embedding.ts'

/** Ollama's `/embed`. Ollama has no limit; inputs are sent in batches to keep a local server responsive. */
export function ollamaEmbeddings(): (endpoint: VendorEndpoint) => EmbeddingHandler {
  return (endpoint) => httpEmbedding(endpoint, wire)
}

const listField = new Set(['embeddings'])

const wire: EmbeddingWire = {
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
