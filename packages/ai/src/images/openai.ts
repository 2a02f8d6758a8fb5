import type { JsonObject } from '@skein/base'
import type {
  BoundImageModel,
  ImageCapabilities,
  ImageHandler,
  ImageRequest,
  ImageResult,
  ImageStreamEvent,
} from '../image.ts'
import { jsonBody, type VendorEndpoint } from '../transport/endpoint.ts'
import { readOpenAIError } from '../wires/openai-error.ts'
import { editForm } from './edit-form.ts'
import { type ImageCall, requestImages } from './http-image.ts'
import { decodeImages } from './openai-body.ts'
import { PartialImageDecoder } from './openai-stream.ts'
import { streamImages } from './stream-images.ts'

export interface OpenAIImageOptions {
  /** What a model can do. Default: what OpenAI documents for its models. */
  readonly capabilities?: (modelId: string) => ImageCapabilities
}

/** `POST /images/generations` and `/images/edits` of OpenAI and servers that speak them. */
export function openaiImages({ capabilities = openaiCapabilities }: OpenAIImageOptions = {}): (
  endpoint: VendorEndpoint,
) => ImageHandler {
  return (endpoint) => ({
    bind: ({ modelId }) => new OpenAIImageModel(endpoint, modelId, capabilities(modelId)),
  })
}

/** xAI: generation only, up to ten images. */
export function xaiImages(): (endpoint: VendorEndpoint) => ImageHandler {
  const capabilities = { generate: true, streaming: false, edit: false, maxImages: 10 }
  return openaiImages({ capabilities: () => capabilities })
}

function openaiCapabilities(modelId: string): ImageCapabilities {
  if (modelId.startsWith('dall-e-3')) {
    return { generate: true, streaming: false, edit: false, maxImages: 1 }
  }
  const streaming = !modelId.startsWith('dall-e')
  return { generate: true, streaming, edit: true, maxImages: 10 }
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

  async generate(request: ImageRequest): Promise<ImageResult> {
    return requestImages(this.#generation(request, {}), decodeImages)
  }

  async edit(request: ImageRequest): Promise<ImageResult> {
    const body = editForm(this.provider, this.modelId, request)
    return requestImages({ ...this.#call(request), path: '/images/edits', body }, decodeImages)
  }

  stream(request: ImageRequest): AsyncIterable<ImageStreamEvent> {
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
