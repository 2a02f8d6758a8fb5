import type { JsonObject } from '@skein/base'
import type { EmbeddingHandler } from '../embedding.ts'
import type { VendorEndpoint } from '../transport/endpoint.ts'
import { decodeError } from '../wires/google-generate/error.ts'
import { mediaPart } from '../wires/google-generate/request.ts'
import { imageSource } from '../wires/media.ts'
import { countOf, isEmpty, listOf, objectOf, without } from '../wires/read-json.ts'
import { httpEmbedding, type DecodedEmbeddings, type EmbeddingWire } from './http-embedding.ts'

/** Gemini's `batchEmbedContents`: at most 100 inputs per request; each input gets a copy of `params`. */
export function googleEmbeddings(): (endpoint: VendorEndpoint) => EmbeddingHandler {
  return (endpoint) => httpEmbedding(endpoint, wire)
}

const wire: EmbeddingWire = {
  maxBatchSize: 100,
  imageInput: true,
  encode: (request, modelId) => ({
    path: `/${resourceOf(modelId).split('/').map(encodeURIComponent).join('/')}:batchEmbedContents`,
    body: {
      requests: request.inputs.map((input) => ({
        model: resourceOf(modelId),
        content: {
          parts: [
            typeof input === 'string'
              ? { text: input }
              : input.type === 'text'
                ? { text: input.text }
                : mediaPart(imageSource(input)),
          ],
        },
        taskType: request.inputType && taskTypes[request.inputType],
        // `params` are sent unchanged (UPP §2.1); non-JSON values fail when the body is written.
        ...(request.params as JsonObject),
      })),
    },
  }),
  decode,
  decodeError,
}

function resourceOf(modelId: string): string {
  return modelId.includes('/') ? modelId : `models/${modelId}`
}

const taskTypes = { document: 'RETRIEVAL_DOCUMENT', query: 'RETRIEVAL_QUERY' } as const

const listField = new Set(['embeddings'])
const valueField = new Set(['values'])

function decode(body: JsonObject): DecodedEmbeddings {
  const usage = objectOf(body['usageMetadata'])
  return {
    vectors: listOf(body['embeddings']).map((item) => {
      const entry = objectOf(item) ?? {}
      const metadata = without(entry, valueField)
      return { vector: entry['values'], metadata: isEmpty(metadata) ? undefined : metadata }
    }),
    totalTokens: countOf(usage?.['totalTokenCount'] ?? usage?.['promptTokenCount']),
    metadata: without(body, listField),
  }
}
