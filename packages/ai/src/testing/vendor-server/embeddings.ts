import { encodeBase64, sha256, type JsonObject, type JsonValue } from '@skein/base'
import { listOf, numberOf, objectOf } from '../../wires/read-json.ts'
import type { WireName } from '../../wires/wire.ts'

const DEFAULT_DIMENSIONS = 8

/** Vectors made from the inputs: the same text always has the same vector. */
export function embeddingsAnswer(wire: WireName, path: string, body: JsonObject): JsonObject {
  if (wire === 'google-generate') return googleAnswer(path, body)
  const input = body['input']
  const inputs: readonly JsonValue[] = Array.isArray(input) ? input : [input ?? '']
  const size = numberOf(body['dimensions']) ?? DEFAULT_DIMENSIONS
  const vectors = inputs.map((one) => vectorOf(one, size))
  const tokens = inputs.reduce<number>((sum, one) => sum + tokensOf(one), 0)
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

function googleAnswer(path: string, body: JsonObject): JsonObject {
  const toVector = (request: JsonObject): JsonObject => {
    const size = numberOf(request['outputDimensionality']) ?? DEFAULT_DIMENSIONS
    return { values: vectorOf(request['content'] ?? null, size) }
  }
  if (path.endsWith(':embedContent')) return { embedding: toVector(body) }
  return { embeddings: listOf(body['requests']).map((one) => toVector(objectOf(one) ?? {})) }
}

/** Each number is exact in 32 bits, so that both encodings say the same. */
function vectorOf(input: JsonValue, size: number): number[] {
  const text = typeof input === 'string' ? input : JSON.stringify(input)
  const numbers: number[] = []
  for (let block = 0; numbers.length < size; block++)
    for (const byte of sha256(`${block} ${text}`)) numbers.push((byte - 128) / 128)
  return numbers.slice(0, size)
}

function tokensOf(input: JsonValue): number {
  return Math.ceil((typeof input === 'string' ? input : JSON.stringify(input)).length / 4)
}

function encodeFloats(vector: readonly number[]): string {
  const view = new DataView(new ArrayBuffer(vector.length * 4))
  vector.forEach((value, index) => view.setFloat32(index * 4, value, true))
  return encodeBase64(new Uint8Array(view.buffer))
}
