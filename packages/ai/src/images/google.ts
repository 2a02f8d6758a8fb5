import type { JsonObject } from '@skein/base'
import type { ImageBlock } from '../contract/content.ts'
import { ErrorCode, UPPError } from '../contract/error.ts'
import type {
  BoundImageModel,
  ImageCapabilities,
  ImageHandler,
  ImageRequest,
  ImageResult,
} from '../image.ts'
import type { VendorEndpoint } from '../transport/endpoint.ts'
import { jsonBody } from '../transport/endpoint.ts'
import { decodeError } from '../wires/google-generate/error.ts'
import { generationConfigOf, topLevel, mediaPart } from '../wires/google-generate/request.ts'
import { imageSource } from '../wires/media.ts'
import { type DecodedImages, requestImages, type VendorImage } from './http-image.ts'
import { countOf, isEmpty, listOf, objectOf, textOf, without } from '../wires/read-json.ts'

/**
 * Image generation with Gemini models that answer with images, and with Imagen, which only generates images.
 */
export function googleImages(): (endpoint: VendorEndpoint) => ImageHandler {
  return (endpoint) => ({
    bind: ({ modelId }) => new GoogleImageModel(endpoint, modelId),
  })
}

const gemini: ImageCapabilities = Object.freeze({ generate: true, streaming: false, edit: true })
const imagen: ImageCapabilities = Object.freeze({
  generate: true,
  streaming: false,
  edit: false,
  maxImages: 4,
})

class GoogleImageModel implements BoundImageModel {
  readonly modelId: string
  readonly provider: string
  readonly capabilities: ImageCapabilities
  readonly #endpoint: VendorEndpoint
  readonly #isImagen: boolean

  constructor(endpoint: VendorEndpoint, modelId: string) {
    this.#endpoint = endpoint
    this.modelId = modelId
    this.provider = endpoint.name
    this.#isImagen = /(^|\/)imagen/.test(modelId)
    this.capabilities = this.#isImagen ? imagen : gemini
  }

  async generate(request: ImageRequest): Promise<ImageResult<ImageBlock>> {
    // For Imagen, `params` are sent as `parameters`.
    const hasParams = Object.keys(request.params).length > 0
    return this.#isImagen
      ? this.#send(
          request,
          'predict',
          {
            instances: [{ prompt: request.prompt }],
            ...(hasParams && { parameters: request.params as JsonObject }),
          },
          (answer) => decodeImagen(answer, this.provider),
        )
      : this.edit(request)
  }

  /**
   * Sends a generation or an edit. Gemini uses the same request for
   * both; images to edit are part of the prompt.
   */
  async edit(request: ImageRequest): Promise<ImageResult<ImageBlock>> {
    if (request.mask) throw this.#invalid('Gemini takes no mask; say in words what to change.')
    const parts = (request.images ?? []).map((image) => mediaPart(imageSource(image)))
    // Gemini answers with images only if `responseModalities` asks for
    // them, so it is added where it is missing.
    const body = {
      contents: [{ role: 'user', parts: [{ text: request.prompt }, ...parts] }],
      ...(topLevel(request.params) as JsonObject), // non-JSON values fail when the body is written
      generationConfig: {
        responseModalities: ['TEXT', 'IMAGE'],
        ...generationConfigOf(request.params),
      },
    }
    return this.#send(request, 'generateContent', body, (answer) =>
      decodeGemini(answer, this.provider),
    )
  }

  #send(
    request: ImageRequest,
    method: string,
    body: JsonObject,
    decode: (body: JsonObject) => DecodedImages,
  ): Promise<ImageResult<ImageBlock>> {
    const id = this.modelId.split('/').map(encodeURIComponent).join('/')
    const resource = id.includes('/') ? id : `models/${id}`
    const context = { provider: this.provider, modality: 'image' } as const
    const call = {
      endpoint: this.#endpoint,
      request,
      path: `/${resource}:${method}`,
      body: jsonBody(body, context),
      decodeError,
    }
    return requestImages(call, decode)
  }

  #invalid(message: string): UPPError {
    return new UPPError(message, {
      code: ErrorCode.InvalidRequest,
      provider: this.provider,
      modality: 'image',
    })
  }
}

const predictionFields = new Set(['bytesBase64Encoded', 'mimeType'])
const predictionList = new Set(['predictions'])

function decodeImagen(body: JsonObject, provider: string): DecodedImages {
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
        metadata: isEmpty(metadata) ? undefined : metadata,
      }
    }),
    metadata: { ...without(body, predictionList), ...(reason && { raiFilteredReason: reason }) },
  }
}

const candidateList = new Set(['candidates', 'usageMetadata'])

function decodeGemini(body: JsonObject, provider: string): DecodedImages {
  const candidates = listOf(body['candidates']).map((item) => objectOf(item) ?? {})
  const parts = candidates.flatMap((item) => listOf(objectOf(item['content'])?.['parts']))
  const images = parts.flatMap((item): VendorImage[] => {
    const part = objectOf(item) ?? {}
    const data = objectOf(part['inlineData'])
    const mimeType = textOf(data?.['mimeType'])
    // Thinking models produce draft images marked as thoughts; these are not part of the answer.
    if (!data || part['thought'] === true || !mimeType?.startsWith('image/')) return []
    return [{ base64: textOf(data['data']), mimeType }]
  })
  if (images.length === 0) throw noImage(body, candidates, parts, provider)
  const usage = objectOf(body['usageMetadata'])
  const text = textIn(parts)
  return {
    images,
    usage: usage && {
      inputTokens: countOf(usage['promptTokenCount']),
      outputTokens: countOf(usage['candidatesTokenCount']) + countOf(usage['thoughtsTokenCount']),
      totalTokens: countOf(usage['totalTokenCount']),
    },
    metadata: { ...without(body, candidateList), ...(text && { text }) },
  }
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
  const blockReason = textOf(objectOf(body['promptFeedback'])?.['blockReason'])
  const finish = textOf(candidates[0]?.['finishReason'])
  if (blockReason || (finish && /SAFETY|PROHIBITED|BLOCKLIST|RECITATION|SPII/.test(finish))) {
    return filtered(provider, (blockReason ?? finish)!)
  }
  const answerText = textIn(parts).slice(0, 200)
  return new UPPError(
    `${provider} made no image${finish ? ` (${finish})` : ''}${answerText && `; it said: ${answerText}`}.`,
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
