import type { JsonObject } from '@skein/base'
import type { MessageStopEvent, StreamEvent } from '../../contract/event.ts'
import { parseArguments } from '../../contract/tool.ts'
import { BlockCollector, collectBlocks, type CollectedBlock } from '../collect-blocks.ts'
import { nativeOf } from '../native.ts'
import { objectOf, without } from '../read-json.ts'
import type { EncodeContext, ServerError, WireEncoder } from '../wire-server.ts'
import { API } from './types.ts'
import { fromUsage } from './usage.ts'

/** A whole answer. */
export function encodeResponse(events: readonly StreamEvent[], context: EncodeContext): JsonObject {
  const { blocks, stop } = collectBlocks(events)
  const textOf = (kinds: readonly string[]): string =>
    blocks.map(({ kind, text }) => (kinds.includes(kind) ? text : '')).join('')
  const thinking = textOf(['reasoning'])
  const calls = blocks.filter(({ kind }) => kind === 'tool_call').map(encodeCall)
  const message = {
    role: 'assistant',
    content: textOf(['text', 'object']),
    ...(thinking !== '' && { thinking }),
    ...(calls.length > 0 && { tool_calls: calls }),
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

/** Writes the events of one message as lines. A call is sent whole, when it ends. */
export class OllamaEncoder implements WireEncoder {
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
      default: {
        const block = this.#collector.push(event)
        const isCallEnd = event.type === 'content_block_stop' && block?.kind === 'tool_call'
        return isCallEnd ? this.#line({ content: '', tool_calls: [encodeCall(block)] }) : ''
      }
    }
  }

  end(): string {
    return ''
  }

  fail({ message }: ServerError): string {
    return `${JSON.stringify({ error: message })}\n`
  }

  #line(message: JsonObject, fields: JsonObject = {}): string {
    const whole = line(this.#context, { role: 'assistant', ...message })
    return `${JSON.stringify({ ...whole, ...fields })}\n`
  }
}
