import type { JsonObject, JsonValue } from '@skein/base'
import { decodeLooseBase64 } from '../media/bytes.ts'
import type {
  BoundEmbeddingModel,
  Embedding,
  EmbeddingHandler,
  EmbeddingRequest,
  EmbeddingResult,
} from '../embedding.ts'
import { ErrorCode, UPPError } from '../contract/error.ts'
import { contextOf, type VendorCall } from '../transport/attempt.ts'
import { type ErrorContext, jsonBody, type VendorEndpoint } from '../transport/endpoint.ts'
import { JsonReader } from '../transport/read-answer.ts'
import { runForOne } from '../transport/vendor-run.ts'
import type { ErrorResponse, VendorError } from '../contract/vendor-error.ts'

/** A vendor's embedding format: pure functions that convert requests and responses. */
export interface EmbeddingWire {
  readonly maxBatchSize: number
  readonly maxBatchTokens?: number
  readonly imageInput: boolean
  encode(request: EmbeddingRequest, modelId: string): { path: string; body: JsonObject }
  decode(body: JsonObject): DecodedEmbeddings
  decodeError(response: ErrorResponse): VendorError
}

/** The content of a response, in the vendor's order. */
export interface DecodedEmbeddings {
  readonly vectors: readonly DecodedVector[]
  readonly totalTokens: number
  /** All other fields of the response. */
  readonly metadata: JsonObject
}

/** One vector of a response: a list of numbers, or floats in base64. */
export interface DecodedVector {
  readonly vector: unknown
  /** The position of the input in the request. Default: the position of the vector in the response. */
  readonly index?: number | undefined
  readonly metadata?: JsonObject
}

/** Makes an embedding handler that sends requests over HTTP. */
export function httpEmbedding(endpoint: VendorEndpoint, wire: EmbeddingWire): EmbeddingHandler {
  const { maxBatchSize, maxBatchTokens, imageInput } = wire
  return {
    maxBatchSize,
    maxBatchTokens,
    imageInput,
    bind: ({ modelId }): BoundEmbeddingModel => ({
      modelId,
      provider: endpoint.name,
      embed: (request) => embed(endpoint, wire, modelId, request),
    }),
  }
}

async function embed(
  endpoint: VendorEndpoint,
  wire: EmbeddingWire,
  modelId: string,
  request: EmbeddingRequest,
): Promise<EmbeddingResult> {
  const { config, signal } = request
  const context: ErrorContext = { provider: endpoint.name, modality: 'embedding' }
  const { path, body } = wire.encode(request, modelId)
  const call: VendorCall = {
    endpoint,
    modality: 'embedding',
    config,
    signal,
    path,
    body: jsonBody(body, context),
    headers: { accept: 'application/json' },
    decodeError: (response) => wire.decodeError(response),
  }
  return runForOne(
    call,
    (answer) => new JsonReader(answer, call, (json) => toResult(json, wire, request, call)),
  )
}

function toResult(
  json: JsonValue,
  wire: EmbeddingWire,
  { inputs }: EmbeddingRequest,
  call: VendorCall,
): EmbeddingResult {
  const context = contextOf(call)
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw malformed('it is not an object', context)
  }
  const { vectors, totalTokens, metadata } = wire.decode(json as JsonObject)
  if (vectors.length !== inputs.length) {
    throw malformed(`it has ${vectors.length} vectors for ${inputs.length} inputs`, context)
  }
  const embeddings: Embedding[] = []
  vectors.forEach((decoded, position) => {
    const index = decoded.index ?? position
    if (!Number.isInteger(index) || index < 0 || index >= inputs.length || embeddings[index]) {
      throw malformed(`the index ${index} occurs twice or is outside the inputs`, context)
    }
    const { vector } = decoded
    const numbers = typeof vector === 'string' ? decodeFloats(vector) : vector
    if (!Array.isArray(numbers) || numbers.length === 0 || !numbers.every(Number.isFinite)) {
      throw malformed(`the vector at ${index} is not a list of numbers`, context)
    }
    embeddings[index] = {
      vector: numbers as number[],
      dimensions: numbers.length,
      index,
      metadata: decoded.metadata && { [context.provider]: decoded.metadata },
    }
  })
  return { embeddings, usage: { totalTokens }, metadata: { [context.provider]: metadata } }
}

function malformed(what: string, context: ErrorContext): UPPError {
  return new UPPError(`The embeddings of ${context.provider} cannot be read: ${what}.`, {
    code: ErrorCode.InvalidResponse,
    ...context,
  })
}

/** Decodes `encoding_format: base64`: 32-bit floats, little endian. */
function decodeFloats(base64: string): number[] | undefined {
  const bytes = decodeLooseBase64(base64)
  if (bytes.length % 4 !== 0) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(i * 4, true))
}
