import { encodeSse, type JsonObject } from '@skein/base'
import { numberOf, objectOf } from '../../wires/read-json.ts'
import type { WireName } from '../../wires/wire.ts'

/** One transparent pixel. */
export const onePixelPng =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** As many images as asked for. */
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

/** Previews, then the image, as OpenAI streams them. */
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
