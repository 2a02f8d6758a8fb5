import type { JsonObject } from '@skein/base'
import { ErrorCode, UPPError } from '../error.ts'
import { countOf, isEmpty, listOf, objectOf, textOf, without } from '../wires/read-json.ts'
import type { DecodedImages, VendorImage } from './http-image.ts'

const predictionFields = new Set(['bytesBase64Encoded', 'mimeType'])
const predictionList = new Set(['predictions'])

export function decodeImagen(body: JsonObject, provider: string): DecodedImages {
  const predictions = listOf(body['predictions']).map((item) => objectOf(item) ?? {})
  const images = predictions.filter((item) => textOf(item['bytesBase64Encoded']) !== undefined)
  const reason = textOf(
    predictions.find((item) => item['raiFilteredReason'])?.['raiFilteredReason'],
  )
  if (images.length === 0) throw filtered(provider, reason ?? 'no image was made')
  return {
    images: images.map((item) => {
      const metadata = without(item, predictionFields)
      return {
        base64: textOf(item['bytesBase64Encoded']),
        mimeType: textOf(item['mimeType']),
        ...(!isEmpty(metadata) && { metadata }),
      }
    }),
    metadata: { ...without(body, predictionList), ...(reason && { raiFilteredReason: reason }) },
  }
}

const candidateList = new Set(['candidates', 'usageMetadata'])

export function decodeGemini(body: JsonObject, provider: string): DecodedImages {
  const candidates = listOf(body['candidates']).map((item) => objectOf(item) ?? {})
  const parts = candidates.flatMap((item) => listOf(objectOf(item['content'])?.['parts']))
  const images = parts.flatMap((part) => readPart(objectOf(part) ?? {}))
  if (images.length === 0) throw noImage(body, candidates, parts, provider)
  const usage = objectOf(body['usageMetadata'])
  const text = textIn(parts)
  return {
    images,
    ...(usage && {
      usage: {
        inputTokens: countOf(usage['promptTokenCount']),
        outputTokens: countOf(usage['candidatesTokenCount']) + countOf(usage['thoughtsTokenCount']),
        totalTokens: countOf(usage['totalTokenCount']),
      },
    }),
    metadata: { ...without(body, candidateList), ...(text && { text }) },
  }
}

function readPart(part: JsonObject): VendorImage[] {
  const data = objectOf(part['inlineData'])
  const mimeType = textOf(data?.['mimeType'])
  // Thinking models draw drafts, marked as thoughts; they are not the answer.
  if (!data || part['thought'] === true || !mimeType?.startsWith('image/')) return []
  return [{ base64: textOf(data['data']), mimeType }]
}

function textIn(parts: readonly unknown[]): string {
  return parts.map((part) => textOf(objectOf(part)?.['text']) ?? '').join('')
}

function noImage(
  body: JsonObject,
  candidates: readonly JsonObject[],
  parts: readonly unknown[],
  provider: string,
): UPPError {
  const blocked = textOf(objectOf(body['promptFeedback'])?.['blockReason'])
  const finish = textOf(candidates[0]?.['finishReason'])
  if (blocked || (finish && /SAFETY|PROHIBITED|BLOCKLIST|RECITATION|SPII/.test(finish))) {
    return filtered(provider, (blocked ?? finish)!)
  }
  const said = textIn(parts).slice(0, 200)
  return new UPPError(
    `${provider} made no image${finish ? ` (${finish})` : ''}${said && `; it said: ${said}`}.`,
    { code: ErrorCode.InvalidResponse, provider, modality: 'image' },
  )
}

function filtered(provider: string, reason: string): UPPError {
  return new UPPError(`${provider} made no image: ${reason}.`, {
    code: ErrorCode.ContentFiltered,
    provider,
    modality: 'image',
  })
}
