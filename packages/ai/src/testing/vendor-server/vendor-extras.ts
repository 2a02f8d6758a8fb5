import {
  encodeBase64,
  encodeSse,
  type JsonObject,
  type JsonValue,
  sha256,
  sha256Hex,
} from '@skein/base'
import type { ProviderMetadata } from '../../contract/content.ts'
import type { BlockKind, StreamEvent } from '../../contract/event.ts'
import { withNative } from '../../wires/metadata.ts'
import type { WireName } from '../../contract/provider.ts'
import { listOf, numberOf, objectOf } from '../../wires/read-json.ts'

/** The vendor that issues signatures: its format and its host. */
interface Issuer {
  readonly wire: WireName
  readonly host: string
}

/**
 * Makes a signature like those that vendors attach to reasoning and calls. It contains the issuer and
 * a hash of the text, so that the checker recognises foreign signatures and changed texts.
 */
function signatureOf({ wire, host }: Issuer, text: string): string {
  return `${wire}@${host}.${sha256Hex(text).slice(0, 24)}`
}

/**
 * Returns a check whether this vendor issued a signature and, if a text is given, issued it for that
 * text.
 */
export function isIssuedBy(issuer: Issuer): (signature: string, text?: string) => boolean {
  const start = `${issuer.wire}@${issuer.host}.`
  return (signature, text) =>
    text === undefined
      ? signature.startsWith(start) || signature === standIn
      : signature === signatureOf(issuer, text)
}

/** The signature that Google documents for calls made by another model. */
const standIn = 'skip_thought_signature_validator'

interface OpenBlock {
  readonly kind: BlockKind
  readonly position: number
  readonly texts: string[]
}

/**
 * Adds to a scripted answer the metadata that the real vendor would add: signatures, encrypted reasoning.
 */
export async function* signed(
  batches: AsyncIterable<readonly StreamEvent[]>,
  issuer: Issuer,
  responseId: string,
): AsyncGenerator<readonly StreamEvent[], void> {
  const open = new Map<number, OpenBlock>()
  let blocks = 0
  let hasCall = false
  for await (const batch of batches) {
    yield batch.map((event) => {
      if (event.type === 'content_block_start') {
        const { block: kind } = event.delta
        const position = blocks++
        open.set(event.index, { kind, position, texts: [] })
        if (kind === 'reasoning' && issuer.wire === 'openai-responses')
          return { ...event, delta: { ...event.delta, itemId: reasoningId(responseId, position) } }
      } else if (event.type === 'reasoning_delta') {
        open.get(event.index)?.texts.push(event.delta.text)
      } else if (event.type === 'content_block_stop' && !event.delta.metadata) {
        const block = open.get(event.index)
        const isFirstCall = block?.kind === 'tool_call' && !hasCall
        if (isFirstCall) hasCall = true
        const metadata = block && nativeFor(issuer, block, { isFirstCall, responseId })
        if (metadata) return { ...event, delta: { metadata } }
      }
      return event
    })
  }
}

function reasoningId(responseId: string, position: number): string {
  return `rs_${responseId}_${position}`
}

function nativeFor(
  issuer: Issuer,
  { kind, position, texts }: OpenBlock,
  { isFirstCall, responseId }: { isFirstCall: boolean; responseId: string },
): ProviderMetadata | undefined {
  const { wire } = issuer
  const text = texts.join('')
  const signature = signatureOf(issuer, text)
  switch (wire) {
    case 'anthropic-messages':
      return kind === 'reasoning'
        ? withNative('anthropic', wire, { type: 'thinking', signature })
        : undefined
    case 'google-generate':
      // Only the first of several parallel calls has a signature.
      return isFirstCall ? withNative('google', wire, { thoughtSignature: signature }) : undefined
    case 'openai-responses': {
      if (kind !== 'reasoning') return undefined
      const summary: JsonObject[] = text === '' ? [] : [{ type: 'summary_text', text }]
      const id = reasoningId(responseId, position)
      const native = { type: 'reasoning', id, summary, encrypted_content: signature }
      return withNative('openai', wire, native)
    }
    case 'openai-chat':
    case 'ollama-chat':
      return undefined
    default:
      return wire satisfies never
  }
}

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
