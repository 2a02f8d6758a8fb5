import type { JsonObject, SseEvent } from '@skein/base'
import type {
  BoundImageModel,
  ImageCapabilities,
  ImageHandler,
  ImageRequest,
  ImageResult,
  ImageStreamEvent,
  ImageUsage,
} from '../image.ts'
import type { VendorEndpoint } from '../transport/endpoint.ts'
import { jsonBody } from '../transport/endpoint.ts'
import { readOpenAIError } from '../wires/openai-error.ts'
import {
  type DecodedImages,
  type ImageCall,
  type ImageFrame,
  requestImages,
  streamImages,
  type VendorImage,
} from './http-image.ts'
import {
  countOf,
  isEmpty,
  listOf,
  numberOf,
  objectOf,
  textOf,
  without,
} from '../wires/read-json.ts'
import { ErrorCode, UPPError } from '../contract/error.ts'
import type { FrameDecoder } from '../transport/read-answer.ts'
import { decodeLooseBase64 } from '../media/bytes.ts'
import type { ImageBlock } from '../contract/content.ts'
import { imageSource } from '../wires/media.ts'

interface OpenAIImageOptions {
  /** Returns the capabilities of a model. Default: those that OpenAI documents for its models. */
  readonly capabilities?: (modelId: string) => ImageCapabilities
}

/** `POST /images/generations` and `/images/edits` of OpenAI and compatible servers. */
export function openaiImages({
  capabilities = (modelId) => {
    if (modelId.startsWith('dall-e-3')) {
      return { generate: true, streaming: false, edit: false, maxImages: 1 }
    }
    const streaming = !modelId.startsWith('dall-e')
    return { generate: true, streaming, edit: true, maxImages: 10 }
  },
}: OpenAIImageOptions = {}): (endpoint: VendorEndpoint) => ImageHandler {
  return (endpoint) => ({
    bind: ({ modelId }) => new OpenAIImageModel(endpoint, modelId, capabilities(modelId)),
  })
}

/** The image models of xAI, which generate up to ten images per request and cannot edit. */
export function xaiImages(): (endpoint: VendorEndpoint) => ImageHandler {
  const capabilities = { generate: true, streaming: false, edit: false, maxImages: 10 }
  return openaiImages({ capabilities: () => capabilities })
}

class OpenAIImageModel implements BoundImageModel {
  readonly modelId: string
  readonly provider: string
  readonly capabilities: ImageCapabilities
  readonly #endpoint: VendorEndpoint

  constructor(endpoint: VendorEndpoint, modelId: string, capabilities: ImageCapabilities) {
    this.#endpoint = endpoint
    this.modelId = modelId
    this.provider = endpoint.name
    this.capabilities = Object.freeze({ ...capabilities })
  }

  async generate(request: ImageRequest): Promise<ImageResult<ImageBlock>> {
    return requestImages(this.#generation(request, {}), decodeImages)
  }

  async edit(request: ImageRequest): Promise<ImageResult<ImageBlock>> {
    // The multipart body of an edit: images, mask, prompt and every parameter as its own field.
    const { images = [], mask, prompt, params } = request
    const body = new FormData()
    body.append('model', this.modelId)
    body.append('prompt', prompt)
    // A single image uses the older field name `image`, which every model accepts.
    const field = images.length > 1 ? 'image[]' : 'image'
    images.forEach((image, index) =>
      appendImage(body, field, `image-${index + 1}`, image, this.provider),
    )
    if (mask) appendImage(body, 'mask', 'mask', mask, this.provider)
    for (const [name, value] of Object.entries(params)) {
      if (value === undefined) continue
      body.set(name, typeof value === 'string' ? value : JSON.stringify(value))
    }
    return requestImages({ ...this.#call(request), path: '/images/edits', body }, decodeImages)
  }

  stream(request: ImageRequest): AsyncIterable<ImageStreamEvent<ImageBlock>> {
    const call = this.#generation(request, { stream: true })
    return streamImages(call, () => new PartialImageDecoder(this.provider), decodeImages)
  }

  #generation(request: ImageRequest, imposed: JsonObject): ImageCall {
    const { prompt, params } = request
    const body = { model: this.modelId, prompt, ...imposed, ...params }
    const context = { provider: this.provider, modality: 'image' } as const
    return {
      ...this.#call(request),
      path: '/images/generations',
      body: jsonBody(body, context),
    }
  }

  #call(request: ImageRequest): Omit<ImageCall, 'path' | 'body'> {
    return { endpoint: this.#endpoint, request, decodeError: readOpenAIError }
  }
}

const listFields = new Set(['data', 'usage'])
const imageFields = new Set(['b64_json', 'url'])

/** Decodes a whole response. */
function decodeImages(body: JsonObject): DecodedImages {
  const usage = readUsage(body)
  return {
    images: listOf(body['data']).map((item) => readImage(objectOf(item) ?? {}, body)),
    usage,
    metadata: without(body, listFields),
  }
}

function readImage(item: JsonObject, body: JsonObject): VendorImage {
  const metadata = without(item, imageFields)
  return {
    base64: textOf(item['b64_json']),
    url: textOf(item['url']),
    mimeType: mimeTypeOf(item) ?? mimeTypeOf(body),
    metadata: isEmpty(metadata) ? undefined : metadata,
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

function readUsage(body: JsonObject): ImageUsage | undefined {
  const usage = objectOf(body['usage'])
  if (!usage) return undefined
  const cost = numberOf(usage['cost'])
  return {
    inputTokens: countOf(usage['input_tokens']),
    outputTokens: countOf(usage['output_tokens']),
    totalTokens: countOf(usage['total_tokens']),
    costUsd: cost,
  }
}

/** Decodes the stream events `image_generation.partial_image`, `.completed` and `error`. */
class PartialImageDecoder implements FrameDecoder<ImageFrame> {
  readonly #provider: string
  #completed = 0
  #usage: ImageUsage | undefined
  #metadata: JsonObject = {}

  constructor(provider: string) {
    this.#provider = provider
  }

  push({ data, event }: SseEvent): readonly ImageFrame[] {
    if (data === '[DONE]') return []
    const body = objectOf(this.#parse(data)) ?? {}
    const type = textOf(body['type']) ?? event
    if (type.endsWith('.partial_image')) {
      return [
        { type: 'preview', index: this.#completed, image: readImage(without(body, preview), body) },
      ]
    }
    if (type.endsWith('.completed')) return [this.#complete(body)]
    if (type === 'error' || body['error'] !== undefined) throw this.#failure(body)
    return []
  }

  end(): readonly ImageFrame[] {
    if (this.#completed === 0) throw this.#malformed('its stream ended without an image')
    const usage = this.#usage && { usage: { imagesGenerated: this.#completed, ...this.#usage } }
    return [{ type: 'end', ...usage, metadata: this.#metadata }]
  }

  #complete(body: JsonObject): ImageFrame {
    this.#usage = readUsage(body) ?? this.#usage
    this.#metadata = without(body, completedFields)
    return {
      type: 'image',
      index: this.#completed++,
      image: readImage(without(body, preview), body),
    }
  }

  #parse(data: string): unknown {
    try {
      return JSON.parse(data)
    } catch (error) {
      throw this.#malformed('an event of its stream is not JSON', error)
    }
  }

  #failure(body: JsonObject): UPPError {
    const { message, code, ...rest } = readOpenAIError({
      status: 200,
      headers: new Headers(),
      json: body,
      text: '',
    })
    return new UPPError(message, {
      ...rest,
      code: code ?? ErrorCode.ProviderError,
      provider: this.#provider,
      modality: 'image',
    })
  }

  #malformed(what: string, cause?: unknown): UPPError {
    return new UPPError(`The answer of ${this.#provider} cannot be read: ${what}.`, {
      code: ErrorCode.InvalidResponse,
      provider: this.#provider,
      modality: 'image',
      cause,
    })
  }
}

const preview = new Set(['type', 'partial_image_index', 'usage'])
const completedFields = new Set(['type', 'b64_json', 'usage'])

function appendImage(
  form: FormData,
  field: string,
  name: string,
  image: ImageBlock,
  provider: string,
): void {
  const { base64, mimeType } = imageSource(image)
  if (base64 === undefined) {
    throw new UPPError(`${provider} takes images to edit as data, not by address.`, {
      code: ErrorCode.InvalidRequest,
      provider,
      modality: 'image',
      hint: 'Download it first and use Image.fromBytes.',
    })
  }
  const blob = new Blob([decodeLooseBase64(base64)], { type: mimeType })
  form.append(field, blob, `${name}.${mimeType.split('+')[0]!.replace(/^image\//, '')}`)
}
