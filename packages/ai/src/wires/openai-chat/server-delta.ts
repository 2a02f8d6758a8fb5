import { encodeBase64, type JsonObject, type JsonValue } from '@skein/base'
import type { StreamEvent } from '../../contract/event.ts'
import { toDataUrl } from '../data-url.ts'

/**
 * Says events as deltas of Chat Completions. Reasoning goes into `reasoning_content` and images
 * into `images`, as the vendors that have them do; native blocks have no place here.
 */
export class DeltaWriter {
  /** Position of each tool call among the calls, by block. */
  readonly #calls = new Map<number, number>()

  write(event: StreamEvent): JsonObject | undefined {
    switch (event.type) {
      case 'text_delta':
      case 'object_delta':
        return { content: event.delta.text }
      case 'reasoning_delta':
        return { reasoning_content: event.delta.text }
      case 'content_block_start':
        return event.delta.block === 'tool_call' ? this.#startCall(event) : undefined
      case 'tool_call_delta': {
        const { argumentsJson } = event.delta
        const index = this.#calls.get(event.index) ?? 0
        return argumentsJson === ''
          ? undefined
          : { tool_calls: [{ index, function: { arguments: argumentsJson } }] }
      }
      case 'image_delta': {
        const { isPartial, url, data, mimeType } = event.delta
        if (isPartial) return undefined
        const image_url = { url: url ?? toDataUrl(mimeType, data) }
        return { images: [{ type: 'image_url', image_url }] }
      }
      case 'audio_delta':
        return { audio: { data: encodeBase64(event.delta.data) } }
      default:
        return undefined
    }
  }

  #startCall({ index: block, delta }: StreamEvent & { type: 'content_block_start' }): JsonObject {
    const index = this.#calls.size
    this.#calls.set(block, index)
    const { toolCallId = '', toolName = '' } = delta
    return {
      tool_calls: [
        { index, id: toolCallId, type: 'function', function: { name: toolName, arguments: '' } },
      ],
    }
  }
}

/** Joins deltas into the message of a whole answer. */
export class MessageWriter {
  readonly #texts: { [field: string]: string[] } = {}
  readonly #calls: { id: JsonValue; name: JsonValue; text: string[] }[] = []
  readonly #images: JsonValue[] = []

  add(delta: JsonObject): void {
    for (const [field, value] of Object.entries(delta)) {
      if (typeof value === 'string') (this.#texts[field] ??= []).push(value)
    }
    for (const image of (delta['images'] ?? []) as JsonValue[]) this.#images.push(image)
    // `DeltaWriter` is the only author of these deltas, so their shape is known.
    for (const piece of (delta['tool_calls'] ?? []) as unknown as CallPiece[]) this.#addCall(piece)
  }

  get message(): JsonObject {
    const content = this.#texts['content']?.join('')
    const reasoning = this.#texts['reasoning_content']?.join('')
    return {
      role: 'assistant',
      content: content ?? null,
      refusal: null,
      ...(reasoning !== undefined && { reasoning_content: reasoning }),
      ...(this.#images.length > 0 && { images: this.#images }),
      ...(this.#calls.length > 0 && {
        tool_calls: this.#calls.map(({ id, name, text }) => ({
          id,
          type: 'function',
          function: { name, arguments: text.join('') },
        })),
      }),
    }
  }

  #addCall({ index, id, function: { name, arguments: text } }: CallPiece): void {
    const call = this.#calls[index]
    if (call) call.text.push(text)
    else this.#calls.push({ id: id ?? '', name: name ?? '', text: [text] })
  }
}

interface CallPiece {
  readonly index: number
  readonly id?: string
  readonly function: { readonly name?: string; readonly arguments: string }
}
