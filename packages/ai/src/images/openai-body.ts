import type { JsonObject } from '@skein/base'
import type { ImageUsage } from '../image.ts'
import {
  countOf,
  isEmpty,
  listOf,
  numberOf,
  objectOf,
  textOf,
  without,
} from '../wires/read-json.ts'
import type { DecodedImages, VendorImage } from './http-image.ts'

const listFields = new Set(['data', 'usage'])
const imageFields = new Set(['b64_json', 'url'])

/** A whole answer. */
export function decodeImages(body: JsonObject): DecodedImages {
  const usage = readUsage(body)
  return {
    images: listOf(body['data']).map((item) => readImage(objectOf(item) ?? {}, body)),
    ...(usage && { usage }),
    metadata: without(body, listFields),
  }
}

export function readImage(item: JsonObject, body: JsonObject): VendorImage {
  const metadata = without(item, imageFields)
  return {
    base64: textOf(item['b64_json']),
    url: textOf(item['url']),
    mimeType: mimeTypeOf(item) ?? mimeTypeOf(body),
    ...(!isEmpty(metadata) && { metadata }),
  }
}

const formats: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpeg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
  svg: 'image/svg+xml',
}

function mimeTypeOf(object: JsonObject): string | undefined {
  const format = textOf(object['output_format'])
  return format === undefined ? textOf(object['mime_type']) : formats[format]
}

export function readUsage(body: JsonObject): ImageUsage | undefined {
  const usage = objectOf(body['usage'])
  if (!usage) return undefined
  const cost = numberOf(usage['cost'])
  return {
    inputTokens: countOf(usage['input_tokens']),
    outputTokens: countOf(usage['output_tokens']),
    totalTokens: countOf(usage['total_tokens']),
    ...(cost !== undefined && { costUsd: cost }),
  }
}
