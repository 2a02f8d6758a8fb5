import type { JsonObject, JsonValue } from '@skein/base'
import { ErrorCode, UPPError } from '../contract/error.ts'
import type { BoundImageModel, ImageHandler, ImageRequest, ImageResult } from '../image.ts'
import type { VendorEndpoint } from '../transport/endpoint.ts'
import { jsonBody } from '../transport/json-body.ts'
import { imageUrl } from '../wires/data-url.ts'
import { readOpenAIError } from '../wires/openai-error.ts'
import { countOf, listOf, numberOf, objectOf, textOf, without } from '../wires/read-json.ts'
import { requestImages, type DecodedImages } from './http-image.ts'

/** OpenRouter's image models answer in a chat completion that asks for the modality `image`. */
export function openrouterImages(): (endpoint: VendorEndpoint) => ImageHandler {
  return (endpoint) => ({ bind: ({ modelId }) => bind(endpoint, modelId) })
}

function bind(endpoint: VendorEndpoint, modelId: string): BoundImageModel {
  const provider = endpoint.name
  // Making and editing are one call: the images are part of what is asked.
  const send = async (request: ImageRequest): Promise<ImageResult> => {
    if (request.mask) throw invalid(provider, 'OpenRouter takes no mask; say what to change.')
    const body = jsonBody(encode(request, modelId), { provider, modality: 'image' })
    const path = '/chat/completions'
    const call = { endpoint, request, path, body, decodeError: readOpenAIError }
    return requestImages(call, (answer) => decode(answer, provider))
  }
  return {
    modelId,
    provider,
    capabilities: Object.freeze({ generate: true, streaming: false, edit: true }),
    generate: send,
    edit: send,
  }
}

function encode({ prompt, images = [], params }: ImageRequest, modelId: string): JsonObject {
  const parts: JsonValue[] = images.map((image) => ({
    type: 'image_url',
    image_url: { url: imageUrl(image) },
  }))
  return {
    model: modelId,
    messages: [{ role: 'user', content: [{ type: 'text', text: prompt }, ...parts] }],
    modalities: ['image', 'text'],
    ...(params as JsonObject), // unchanged (UPP §2.1)
  }
}

const listFields = new Set(['choices', 'usage'])

function decode(body: JsonObject, provider: string): DecodedImages {
  const message = objectOf(objectOf(listOf(body['choices'])[0])?.['message'])
  const urls = listOf(message?.['images']).flatMap(
    (item) => textOf(objectOf(objectOf(item)?.['image_url'])?.['url']) ?? [],
  )
  const text = textOf(message?.['content'])
  if (urls.length === 0) throw noImage(provider, text)
  const usage = objectOf(body['usage'])
  const cost = numberOf(usage?.['cost'])
  return {
    images: urls.map((url) => ({ url })),
    usage: usage && {
      inputTokens: countOf(usage['prompt_tokens']),
      outputTokens: countOf(usage['completion_tokens']),
      totalTokens: countOf(usage['total_tokens']),
      costUsd: cost,
    },
    metadata: { ...without(body, listFields), ...(text !== undefined && { text }) },
  }
}

function noImage(provider: string, said: string | undefined): UPPError {
  return new UPPError(
    `${provider} made no image${said ? `; it said: ${said.slice(0, 200)}` : ''}.`,
    {
      code: ErrorCode.InvalidResponse,
      provider,
      modality: 'image',
    },
  )
}

function invalid(provider: string, message: string): UPPError {
  return new UPPError(message, { code: ErrorCode.InvalidRequest, provider, modality: 'image' })
}
