import type { JsonObject } from '@skein/base'
import { readRequest } from '../wire-error.ts'
import type { EncodeContext, ServerError, WireEncoder, WireServer } from '../wire-server.ts'
import { encodeError } from './server-error.ts'
import { decodeRequest } from './server-request.ts'
import { API } from './types.ts'
import type { MessageStopEvent, StreamEvent } from '../../contract/event.ts'
import { parseArguments } from '../../contract/parse-arguments.ts'
import { BlockCollector, collectBlocks, type CollectedBlock } from '../collect-blocks.ts'
import { nativeOf } from '../metadata.ts'
import { objectOf, without } from '../read-json.ts'
import { fromUsage } from './usage.ts'

/** Ollama's `/api/chat` for servers: reads requests of its clients, and writes one message per answer. */
export const ollamaChatServer: WireServer = {
  name: API,
  decodeRequest: (body) => readRequest('ollama', () => decodeRequest(body)),
  encodeResponse,
  createEncoder: (context) => new OllamaEncoder(context),
  encodeError,
}

/** Writes a complete answer. */
function encodeResponse(events: readonly StreamEvent[], context: EncodeContext): JsonObject {
  const { blocks, stop } = collectBlocks(events)
  let content = ''
  let thinking = ''
  const calls: JsonObject[] = []
  for (const block of blocks) {
    switch (block.kind) {
      case 'text':
      case 'object':
        content += block.text
        break
      case 'reasoning':
        thinking += block.text
        break
      case 'tool_call':
        calls.push(encodeCall(block))
        break
      case 'image':
      case 'audio':
      case 'video':
      case 'native':
        break // this format supports only text and calls in answers
      default:
        block.kind satisfies never
    }
  }
  const message = {
    role: 'assistant',
    content,
    thinking: thinking || undefined,
    tool_calls: calls.length > 0 ? calls : undefined,
  }
  return { ...line(context, message), ...stopFields(stop) }
}

function line({ request, createdAt }: EncodeContext, message: JsonObject): JsonObject {
  const created_at = new Date(createdAt).toISOString()
  return { model: request.modelId, created_at, message, done: false }
}

function stopFields(stop: MessageStopEvent['delta'] | undefined): JsonObject {
  if (!stop) return { done: true }
  const isCut = stop.stopReason === 'max_tokens' || stop.stopReason === 'context_window'
  return { done: true, done_reason: isCut ? 'length' : 'stop', ...fromUsage(stop.usage) }
}

function encodeCall({ start, text, metadata }: CollectedBlock): JsonObject {
  const native = nativeOf(metadata, 'ollama', API) ?? {}
  return {
    ...without(native, new Set(['function'])),
    function: {
      ...objectOf(native['function']),
      name: start.toolName ?? '',
      arguments: parseArguments(text).arguments ?? {},
    },
  }
}

/** Writes the events of one message as lines. A call is written at its end, in one piece. */
class OllamaEncoder implements WireEncoder {
  readonly #context: EncodeContext
  readonly #collector = new BlockCollector()

  constructor(context: EncodeContext) {
    this.#context = context
  }

  push(event: StreamEvent): string {
    switch (event.type) {
      case 'text_delta':
      case 'object_delta':
        return this.#line({ content: event.delta.text })
      case 'reasoning_delta':
        return this.#line({ content: '', thinking: event.delta.text })
      case 'message_stop':
        return this.#line({ content: '' }, stopFields(event.delta))
      case 'content_block_stop': {
        const block = this.#collector.push(event)
        if (block?.kind !== 'tool_call') return ''
        return this.#line({ content: '', tool_calls: [encodeCall(block)] })
      }
      case 'content_block_start':
      case 'tool_call_delta':
        this.#collector.push(event)
        return ''
      case 'image_delta':
      case 'audio_delta':
      case 'video_delta':
      case 'message_start':
      case 'tool_execution_start':
      case 'tool_execution_end':
        return ''
      default:
        return event satisfies never
    }
  }

  end(): string {
    return ''
  }

  ping(): string {
    return '\n'
  }

  fail({ message }: ServerError): string {
    return `${JSON.stringify({ error: message })}\n`
  }

  #line(message: JsonObject, fields: JsonObject = {}): string {
    const whole = line(this.#context, { role: 'assistant', ...message })
    return `${JSON.stringify({ ...whole, ...fields })}\n`
  }
}
