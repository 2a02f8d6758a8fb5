import { encodeBase64, encodeSse, type JsonObject, type JsonValue, sha256 } from '@skein/base'
import type { WireName } from '../../contract/provider.ts'
import { listOf, numberOf, objectOf } from '../../wires/read-json.ts'

const DEFAULT_DIMENSIONS = 8

/**
 * Answers an embeddings request. The vectors are computed from the inputs: equal texts have equal
 * vectors.
 */
export function embeddingsAnswer(wire: WireName, path: string, body: JsonObject): JsonObject {
  if (wire === 'google-generate') {
    const toVector = (request: JsonObject): JsonObject => {
      const size = numberOf(request['outputDimensionality']) ?? DEFAULT_DIMENSIONS
      return { values: vectorOf(request['content'] ?? null, size) }
    }
    if (path.endsWith(':embedContent')) return { embedding: toVector(body) }
    return { embeddings: listOf(body['requests']).map((one) => toVector(objectOf(one) ?? {})) }
  }
  const input = body['input']
  const inputs: readonly JsonValue[] = Array.isArray(input) ? input : [input ?? '']
  const size = numberOf(body['dimensions']) ?? DEFAULT_DIMENSIONS
  const vectors = inputs.map((one) => vectorOf(one, size))
  const tokens = inputs.reduce<number>((sum, one) => sum + Math.ceil(inputText(one).length / 4), 0)
  const model = body['model'] ?? 'embedding'
  if (wire === 'ollama-chat') return { model, embeddings: vectors, prompt_eval_count: tokens }
  const isBase64 = body['encoding_format'] === 'base64'
  return {
    object: 'list',
    model,
    data: vectors.map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: isBase64 ? encodeFloats(vector) : vector,
    })),
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  }
}

/**
 * Computes a vector from a hash of the input. Its numbers are exact as 32-bit floats, so that JSON and
 * base64 contain the same numbers.
 */
function vectorOf(input: JsonValue, size: number): number[] {
  const text = inputText(input)
  const numbers: number[] = []
  for (let block = 0; numbers.length < size; block++)
    for (const byte of sha256(`${block} ${text}`)) numbers.push((byte - 128) / 128)
  return numbers.slice(0, size)
}

function inputText(input: JsonValue): string {
  return typeof input === 'string' ? input : JSON.stringify(input)
}

function encodeFloats(vector: readonly number[]): string {
  const view = new DataView(new ArrayBuffer(vector.length * 4))
  vector.forEach((value, index) => view.setFloat32(index * 4, value, true))
  return encodeBase64(new Uint8Array(view.buffer))
}

/** A PNG image of one transparent pixel. */
const onePixelPng =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** Answers an image request with as many images as it asks for. */
export function imagesAnswer(wire: WireName, body: JsonObject, createdAt: number): JsonObject {
  if (wire === 'google-generate') {
    const count = numberOf(objectOf(body['parameters'])?.['sampleCount']) ?? 1
    const prediction = { bytesBase64Encoded: onePixelPng, mimeType: 'image/png' }
    return { predictions: Array.from({ length: count }, () => prediction) }
  }
  const count = Number(body['n'] ?? 1)
  return {
    created: Math.floor(createdAt / 1000),
    output_format: 'png',
    data: Array.from({ length: count }, () => ({ b64_json: onePixelPng })),
    usage,
  }
}

const usage: JsonObject = { input_tokens: 5, output_tokens: 10, total_tokens: 15 }

/** Makes the frames of an image stream of OpenAI: the previews, then the image. */
export function imageFrames(body: JsonObject): readonly string[] {
  const previews = numberOf(body['partial_images']) ?? 0
  const frame = (type: string, fields: JsonObject): string => {
    const data = { type, b64_json: onePixelPng, output_format: 'png', ...fields }
    return encodeSse({ event: type, data: JSON.stringify(data) })
  }
  return [
    ...Array.from({ length: previews }, (_, partial_image_index) =>
      frame('image_generation.partial_image', { partial_image_index }),
    ),
    frame('image_generation.completed', { usage }),
  ]
}
