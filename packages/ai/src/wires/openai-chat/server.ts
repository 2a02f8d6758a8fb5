import { encodeBase64, encodeSse, type JsonObject, type JsonValue } from '@skein/base'
import { encodeError, errorBody } from '../openai-server-error.ts'
import { readRequest } from '../wire-error.ts'
import type { EncodeContext, ServerError, WireEncoder, WireServer } from '../wire-server.ts'
import { decodeRequest } from './server-request.ts'
import type { MessageStopEvent, StreamEvent } from '../../contract/event.ts'
import { fromStopReason } from './stream.ts'
import { fromUsage } from './usage.ts'
import { toDataUrl } from '../media.ts'

/**
 * Chat Completions for servers: reads requests of its clients, and writes one message per answer. Vendor
 * options that a client sends on parts and tools are kept under `metadata.openai`.
 */
export const openaiChatServer: WireServer = {
  name: 'openai-chat',
  decodeRequest: (body) => readRequest('openai', () => decodeRequest(body)),
  encodeResponse,
  createEncoder: (context) => new ChatEncoder(context),
  encodeError,
}

/** Writes the events of one message as chunks. */
class ChatEncoder implements WireEncoder {
  readonly #context: EncodeContext
  readonly #writer = new DeltaWriter()

  constructor(context: EncodeContext) {
    this.#context = context
  }

  push(event: StreamEvent): string {
    if (event.type === 'message_start') return this.#chunk({ role: 'assistant', content: '' })
    if (event.type === 'message_stop') return this.#stop(event.delta)
    const delta = this.#writer.write(event)
    return delta ? this.#chunk(delta) : ''
  }

  end(): string {
    return encodeSse({ data: '[DONE]' })
  }

  ping(): string {
    return ': ping\n\n'
  }

  fail(error: ServerError): string {
    return encodeSse({ data: JSON.stringify(errorBody(error)) })
  }

  #stop({ stopReason, usage }: MessageStopEvent['delta']): string {
    const last = this.#chunk({}, fromStopReason(stopReason))
    if (!this.#context.request.includeUsage) return last
    return last + this.#frame({ choices: [], usage: fromUsage(usage) })
  }

  #chunk(delta: JsonObject, finishReason: string | null = null): string {
    return this.#frame({
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
    })
  }

  #frame(fields: Readonly<Record<string, JsonValue>>): string {
    const head = headOf(this.#context, 'chat.completion.chunk')
    return encodeSse({ data: JSON.stringify({ ...head, ...fields }) })
  }
}

/** Writes a complete answer by joining the deltas that a stream would contain. */
function encodeResponse(events: readonly StreamEvent[], context: EncodeContext): JsonObject {
  const writer = new DeltaWriter()
  const message = new MessageWriter()
  let stop: MessageStopEvent['delta'] | undefined
  for (const event of events) {
    if (event.type === 'message_stop') stop = event.delta
    const delta = writer.write(event)
    if (delta) message.add(delta)
  }
  const finish_reason = fromStopReason(stop?.stopReason ?? 'other')
  return {
    ...headOf(context, 'chat.completion'),
    choices: [{ index: 0, message: message.message, logprobs: null, finish_reason }],
    usage: stop && fromUsage(stop.usage),
  }
}

function headOf({ id, createdAt, request }: EncodeContext, object: string): JsonObject {
  return {
    id: `chatcmpl-${id}`,
    object,
    created: Math.floor(createdAt / 1000),
    model: request.modelId,
  }
}

/**
 * Converts events to deltas of Chat Completions. Reasoning is written to `reasoning_content` and images
 * to `images`, as vendors that support them do; native blocks are dropped.
 */
class DeltaWriter {
  /** The position of each tool call among the calls, by block index. */
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
      case 'video_delta':
      case 'content_block_stop':
      case 'message_start':
      case 'message_stop':
      case 'tool_execution_start':
      case 'tool_execution_end':
        return undefined
      default:
        return event satisfies never
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

/** Joins deltas into the message of a complete answer. */
class MessageWriter {
  readonly #texts: { [field: string]: string[] } = {}
  readonly #calls: { id: JsonValue; name: JsonValue; text: string[] }[] = []
  readonly #images: JsonValue[] = []

  add(delta: JsonObject): void {
    for (const [field, value] of Object.entries(delta)) {
      if (typeof value === 'string') (this.#texts[field] ??= []).push(value)
    }
    for (const image of (delta['images'] ?? []) as JsonValue[]) this.#images.push(image)
    // All deltas are made by `DeltaWriter`, so their shape is known.
    for (const piece of (delta['tool_calls'] ?? []) as unknown as CallPiece[]) this.#addCall(piece)
  }

  get message(): JsonObject {
    const content = this.#texts['content']?.join('')
    const reasoning = this.#texts['reasoning_content']?.join('')
    const calls = this.#calls.map(({ id, name, text }) => ({
      id,
      type: 'function',
      function: { name, arguments: text.join('') },
    }))
    return {
      role: 'assistant',
      content: content ?? null,
      refusal: null,
      reasoning_content: reasoning,
      images: this.#images.length > 0 ? this.#images : undefined,
      tool_calls: calls.length > 0 ? calls : undefined,
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
