import type { JsonObject, SseEvent } from '@skein/base'
import { ErrorCode, UPPError } from '../error.ts'
import type { ImageUsage } from '../image.ts'
import type { FrameDecoder } from '../transport/read-answer.ts'
import { readOpenAIError } from '../wires/openai-error.ts'
import { objectOf, textOf, without } from '../wires/read-json.ts'
import { readImage, readUsage } from './openai-body.ts'
import type { ImageFrame } from './stream-images.ts'

/** `image_generation.partial_image`, `.completed` and `error`. */
export class PartialImageDecoder implements FrameDecoder<ImageFrame> {
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
    this.#metadata = without(body, completed)
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
const completed = new Set(['type', 'b64_json', 'usage'])
