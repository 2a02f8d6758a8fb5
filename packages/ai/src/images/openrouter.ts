import type { JsonObject, JsonValue } from '@skein/base'
import type { ImageBlock } from '../contract/content.ts'
import { ErrorCode, UPPError } from '../contract/error.ts'
import type { BoundImageModel, ImageHandler, ImageRequest, ImageResult } from '../image.ts'
import { jsonBody, type VendorEndpoint } from '../transport/endpoint.ts'
import { imageUrl } from '../wires/media.ts'
import { readOpenAIError } from '../wires/openai-error.ts'
import { countOf, listOf, numberOf, objectOf, textOf, without } from '../wires/read-json.ts'
import { requestImages, type DecodedImages } from './http-image.ts'

/** OpenRouter's image models answer in a chat completion whose request asks for the modality `image`. */
export function openrouterImages(): (endpoint: VendorEndpoint) => ImageHandler {
  return (endpoint) => ({ bind: ({ modelId }) => bind(endpoint, modelId) })
}

function bind(endpoint: VendorEndpoint, modelId: string): BoundImageModel {
  const provider = endpoint.name
  // Generation and editing use the same request; images to edit are part of the message.
  const send = async (request: ImageRequest): Promise<ImageResult<ImageBlock>> => {
    if (request.mask)
      throw new UPPError('OpenRouter takes no mask; say what to change.', {
        code: ErrorCode.InvalidRequest,
        provider,
        modality: 'image',
      })
    const { prompt, images = [], params } = request
    const parts: JsonValue[] = images.map((image) => ({
      type: 'image_url',
      image_url: { url: imageUrl(image) },
    }))
    const fields: JsonObject = {
      model: modelId,
      messages: [{ role: 'user', content: [{ type: 'text', text: prompt }, ...parts] }],
      modalities: ['image', 'text'],
      ...(params as JsonObject), // unchanged (UPP §2.1)
    }
    const body = jsonBody(fields, { provider, modality: 'image' })
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

const listFields = new Set(['choices', 'usage'])

function decode(answer: JsonObject, provider: string): DecodedImages {
  const message = objectOf(objectOf(listOf(answer['choices'])[0])?.['message'])
  const urls = listOf(message?.['images']).flatMap(
    (item) => textOf(objectOf(objectOf(item)?.['image_url'])?.['url']) ?? [],
  )
  const text = textOf(message?.['content'])
  if (urls.length === 0)
    throw new UPPError(
      `${provider} made no image${text ? `; it said: ${text.slice(0, 200)}` : ''}.`,
      {
        code: ErrorCode.InvalidResponse,
        provider,
        modality: 'image',
      },
    )
  const usage = objectOf(answer['usage'])
  const cost = numberOf(usage?.['cost'])
  return {
    images: urls.map((url) => ({ url })),
    usage: usage && {
      inputTokens: countOf(usage['prompt_tokens']),
      outputTokens: countOf(usage['completion_tokens']),
      totalTokens: countOf(usage['total_tokens']),
      costUsd: cost,
    },
    metadata: { ...without(answer, listFields), ...(text !== undefined && { text }) },
  }
}
