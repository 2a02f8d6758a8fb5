import type { JsonObject, JsonValue } from '@skein/base'
import type { ImageBlock } from '../contract/content.ts'
import { ErrorCode, UPPError } from '../contract/error.ts'
import { openrouterEmbeddings } from '../embeddings/openai.ts'
import type { BoundImageModel, ImageHandler, ImageRequest, ImageResult } from '../image.ts'
import { requestImages, type DecodedImages } from '../images/http-image.ts'
import { jsonBody, type VendorEndpoint } from '../transport/endpoint.ts'
import { imageUrl } from '../wires/media.ts'
import { readOpenAIError } from '../wires/openai-error.ts'
import { countOf, listOf, numberOf, objectOf, textOf, without } from '../wires/read-json.ts'
import { defineVendor } from './define-vendor.ts'
import { chatCompletions, chooseApi, responses } from './openai-family.ts'
import type { ChatParams, ResponsesParams, TwoApis } from './openai.ts'

const chat = chatCompletions({
  media: ['image', 'audio', 'document', 'video'],
  documentUrl: 'file_data',
  reasoning: 'reasoning_details',
  parameters: { maxTokens: 'max_tokens', seed: 'seed', reasoning: 'object' },
  replayFields: ['annotations'],
})

/** OpenRouter's Responses has parts for audio and video, which OpenAI's Responses lacks. */
const openResponses = responses({ media: ['image', 'document', 'audio', 'video'] })

/** Known parameters, by the names of `@openrouter/sdk 1.3.19`. */
type ChatKnown = Omit<ChatParams, 'n' | 'stream_options'> &
  Routing & {
    readonly max_completion_tokens?: number
    readonly min_p?: number
    readonly prediction?: object
    readonly reasoning?: {
      readonly effort?: Effort
      readonly summary?: 'auto' | 'concise' | 'detailed'
      readonly max_tokens?: number
      readonly exclude?: boolean
      readonly enabled?: boolean
    }
    readonly reasoning_effort?: Effort
    readonly repetition_penalty?: number
    readonly stream_options?: { readonly include_usage?: boolean }
    readonly top_a?: number
    readonly top_k?: number
  }

/** The same for Responses. */
type ResponsesKnown = Pick<
  ResponsesParams,
  | 'background'
  | 'include'
  | 'instructions'
  | 'max_output_tokens'
  | 'max_tool_calls'
  | 'metadata'
  | 'parallel_tool_calls'
  | 'previous_response_id'
  | 'prompt'
  | 'safety_identifier'
  | 'temperature'
  | 'text'
  | 'tool_choice'
  | 'tools'
  | 'top_logprobs'
  | 'top_p'
  | 'truncation'
  | 'user'
> &
  Routing & {
    readonly frequency_penalty?: number
    readonly presence_penalty?: number
    readonly store?: false
    readonly reasoning?: {
      readonly effort?: Effort
      readonly summary?: 'auto' | 'concise' | 'detailed'
      readonly max_tokens?: number
      readonly enabled?: boolean
    }
    readonly top_k?: number
  }

type Effort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max'

/** Parameters that OpenRouter adds to both of OpenAI's APIs. */
type Routing = {
  readonly cache_control?: { readonly type: 'ephemeral'; readonly ttl?: '5m' | '1h' }
  readonly debug?: object
  readonly image_config?: object
  readonly modalities?: readonly ('text' | 'image' | 'audio')[]
  readonly models?: readonly string[]
  readonly plugins?: readonly object[]
  readonly prompt_cache_key?: string
  readonly prompt_cache_options?: object
  /** Which upstream providers may answer, in which order and at which price. */
  readonly provider?: object
  readonly service_tier?: 'auto' | 'default' | 'fast' | 'flex' | 'priority' | 'scale'
  readonly session_id?: string
  readonly stop_server_tools_when?: readonly object[]
  readonly trace?: object
}

/**
 * OpenRouter, through Chat Completions; pass `{ api: 'responses' }` after the model id to use Responses.
 *
 * - `reasoning_details` (with signatures) and `annotations` (of parsed files) are kept in
 *   `message.metadata.openrouter` and sent back.
 * - Routing goes in `params`: `models`, `provider`, `plugins`, `transforms`.
 * - `usage.costUsd` is the amount that OpenRouter charged.
 *
 * Request bodies are compared with those of `@openrouter/sdk 1.3.19` (docs/vendor-bodies.md).
 */
export const openrouter: TwoApis<ChatKnown, ResponsesKnown, 'chat'> = defineVendor({
  name: 'openrouter',
  baseUrl: 'https://openrouter.ai/api/v1',
  keyVariables: ['OPENROUTER_API_KEY'],
  llm: chooseApi('openrouter', { chat, responses: openResponses }, 'chat'),
  embedding: openrouterEmbeddings(),
  image: openrouterImages(),
})

/** OpenRouter's image models answer in a chat completion whose request asks for the modality `image`. */
function openrouterImages(): (endpoint: VendorEndpoint) => ImageHandler {
  return (endpoint) => ({ bind: ({ modelId }) => bindImages(endpoint, modelId) })
}

function bindImages(endpoint: VendorEndpoint, modelId: string): BoundImageModel {
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
    return requestImages(call, (answer) => decodeImages(answer, provider))
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

function decodeImages(answer: JsonObject, provider: string): DecodedImages {
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

export default openrouter
