import type { JsonObject } from '@skein/base'
import type { EmbeddingHandler } from '../embedding.ts'
import type { VendorEndpoint } from '../transport/endpoint.ts'
import { imageUrl } from '../wires/media.ts'
import { readOpenAIError } from '../wires/openai-error.ts'
import { countOf, isEmpty, listOf, numberOf, objectOf, without } from '../wires/read-json.ts'
import { httpEmbedding, type DecodedEmbeddings, type EmbeddingWire } from './http-embedding.ts'

/** The ways in which a vendor with OpenAI's format may differ from OpenAI. */
export interface OpenAIEmbeddingOptions {
  /** Default 2048, OpenAI's limit. */
  readonly maxBatchSize?: number
  /** Default 300,000, OpenAI's limit. */
  readonly maxBatchTokens?: number
  /** Whether inputs may be content lists with images (OpenRouter). */
  readonly imageInput?: boolean
  /** The vendor's field for `inputType` and its two values. */
  readonly inputType?: { readonly field: string; readonly document: string; readonly query: string }
}

/** `POST /embeddings` of OpenAI, Azure OpenAI and every compatible server. */
export function openaiEmbeddings(
  options: OpenAIEmbeddingOptions = {},
): (endpoint: VendorEndpoint) => EmbeddingHandler {
  const { maxBatchSize = 2048, maxBatchTokens = 300_000, imageInput = false } = options
  const wire: EmbeddingWire = {
    maxBatchSize,
    maxBatchTokens,
    imageInput,
    encode: ({ inputs, params, inputType }, modelId) => {
      const kind = inputType && options.inputType
      const body = {
        model: modelId,
        input: inputs.map((input) => {
          if (typeof input === 'string') return input
          if (input.type === 'text') return input.text
          return { content: [{ type: 'image_url', image_url: { url: imageUrl(input) } }] }
        }),
        ...(kind && { [kind.field]: kind[inputType] }),
        ...(params as JsonObject), // unchanged (UPP §2.1); non-JSON values fail when the body is written
      }
      return { path: '/embeddings', body }
    },
    decode,
    decodeError: readOpenAIError,
  }
  return (endpoint) => httpEmbedding(endpoint, wire)
}

/**
 * The embeddings of Mistral, which documents no limit on the number of inputs but limits the tokens of a
 * request.
 */
export function mistralEmbeddings(): (endpoint: VendorEndpoint) => EmbeddingHandler {
  return openaiEmbeddings({ maxBatchSize: 128, maxBatchTokens: 16_000 })
}

/** The embeddings of OpenRouter, which passes images and the input type on to models that support them. */
export function openrouterEmbeddings(): (endpoint: VendorEndpoint) => EmbeddingHandler {
  return openaiEmbeddings({
    imageInput: true,
    inputType: { field: 'input_type', document: 'search_document', query: 'search_query' },
  })
}

const dataField = new Set(['data'])
const vectorFields = new Set(['embedding', 'index', 'object'])

function decode(body: JsonObject): DecodedEmbeddings {
  const usage = objectOf(body['usage'])
  return {
    vectors: listOf(body['data']).map((item) => {
      const entry = objectOf(item) ?? {}
      const metadata = without(entry, vectorFields)
      return {
        vector: entry['embedding'],
        index: numberOf(entry['index']),
        metadata: isEmpty(metadata) ? undefined : metadata,
      }
    }),
    totalTokens: countOf(usage?.['total_tokens'] ?? usage?.['prompt_tokens']),
    metadata: without(body, dataField),
  }
}
