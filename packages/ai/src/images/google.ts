import type { JsonObject } from '@skein/base'
import type { ImageBlock } from '../content.ts'
import { ErrorCode, UPPError } from '../error.ts'
import type {
  BoundImageModel,
  ImageCapabilities,
  ImageHandler,
  ImageRequest,
  ImageResult,
} from '../image.ts'
import { jsonBody, type VendorEndpoint } from '../transport/endpoint.ts'
import { decodeError } from '../wires/google-generate/error.ts'
import { generationConfigOf, topLevel } from '../wires/google-generate/request.ts'
import { imageSource } from '../wires/media.ts'
import { type DecodedImages, requestImages } from './http-image.ts'
import { decodeGemini, decodeImagen } from './google-body.ts'

/** Gemini models that answer with images, and Imagen, which only makes them. */
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

  async generate(request: ImageRequest): Promise<ImageResult> {
    return this.#isImagen
      ? this.#send(request, 'predict', predictBody(request), (answer) =>
          decodeImagen(answer, this.provider),
        )
      : this.edit(request)
  }

  /** For Gemini, making and editing are one call: the images are part of what it is asked. */
  async edit(request: ImageRequest): Promise<ImageResult> {
    if (request.mask) throw this.#invalid('Gemini takes no mask; say in words what to change.')
    const parts = (request.images ?? []).map((image) => imagePart(image))
    const body = generateBody(request, parts)
    return this.#send(request, 'generateContent', body, (answer) =>
      decodeGemini(answer, this.provider),
    )
  }

  #send(
    request: ImageRequest,
    method: string,
    body: JsonObject,
    decode: (body: JsonObject) => DecodedImages,
  ): Promise<ImageResult> {
    const resource = this.modelId.includes('/') ? this.modelId : `models/${this.modelId}`
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

/** Imagen: `params` are its `parameters`. */
function predictBody({ prompt, params }: ImageRequest): JsonObject {
  return { instances: [{ prompt }], parameters: params as JsonObject }
}

/** Gemini answers with images only when asked to, so this one field is added where it is missing. */
function generateBody({ prompt, params }: ImageRequest, images: readonly JsonObject[]): JsonObject {
  return {
    contents: [{ role: 'user', parts: [{ text: prompt }, ...images] }],
    ...(topLevel(params) as JsonObject), // what is not JSON fails when it is written
    generationConfig: { responseModalities: ['TEXT', 'IMAGE'], ...generationConfigOf(params) },
  }
}

function imagePart(image: ImageBlock): JsonObject {
  const { base64, url, mimeType } = imageSource(image)
  return url === undefined
    ? { inlineData: { mimeType, data: base64 } }
    : { fileData: { mimeType, fileUri: url } }
}
