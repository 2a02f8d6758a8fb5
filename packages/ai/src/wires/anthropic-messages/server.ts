import { encodeSse, type JsonObject, type JsonValue } from '@skein/base'
import { readRequest } from '../wire-error.ts'
import type { EncodeContext, ServerError, WireEncoder, WireServer } from '../wire-server.ts'
import { encodeError, errorBody } from './server-error.ts'
import { decodeRequest } from './server-request.ts'
import { type AnthropicBlock, type AnthropicResponse, API } from './types.ts'
import type { MessageStopEvent, StreamEvent } from '../../contract/event.ts'
import { parseArguments } from '../../contract/parse-arguments.ts'
import { BlockCollector, collectBlocks, type CollectedBlock } from '../collect-blocks.ts'
import { packReasoning } from '../carried-reasoning.ts'
import { nativeOf } from '../metadata.ts'
import { listOf, textOf } from '../read-json.ts'
import { fromStopReason } from './stream.ts'
import { fromUsage } from './usage.ts'

/** Anthropic's Messages API for servers: reads requests of its clients, and writes one message per answer. */
export const anthropicMessagesServer: WireServer = {
  name: API,
  decodeRequest: (body) => readRequest('anthropic', () => decodeRequest(body)),
  encodeResponse,
  createEncoder: (context) => new AnthropicEncoder(context),
  encodeError,
}

/** Writes a complete answer. */
function encodeResponse(events: readonly StreamEvent[], context: EncodeContext): AnthropicResponse {
  const { blocks, stop } = collectBlocks(events)
  return {
    ...emptyMessage(context),
    content: blocks.map(encodeBlock).filter((block) => block !== undefined),
    ...(stop ? { ...stopFields(stop), usage: fromUsage(stop.usage) } : {}),
  }
}

function emptyMessage({ id, request }: EncodeContext): AnthropicResponse {
  return {
    id: `msg_${id}`,
    type: 'message',
    role: 'assistant',
    model: request.modelId,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 0, output_tokens: 0 },
  }
}

/** Writes a finished block; undefined if the API cannot express it (media, blocks of other vendors). */
function encodeBlock(block: CollectedBlock): AnthropicBlock | undefined {
  const { kind, text, start } = block
  const native = nativeOf(block.metadata, 'anthropic', API)
  switch (kind) {
    case 'text':
    case 'object':
      return { ...native, type: 'text', text }
    case 'reasoning':
      if (native?.['type'] === 'redacted_thinking') return native as AnthropicBlock
      if (native) return { signature: '', ...native, type: 'thinking', thinking: text }
      // Reasoning of another vendor carries what that vendor needs in the place of the signature.
      return carriedThinking(text, block.metadata)
    case 'tool_call':
      return {
        ...native,
        type: 'tool_use',
        id: start.toolCallId ?? '',
        name: start.toolName ?? '',
        input: parseArguments(text).arguments ?? {},
      }
    case 'image':
    case 'audio':
    case 'video':
    case 'native':
      return native as AnthropicBlock | undefined // a native block always has a `type`
    default:
      return kind satisfies never
  }
}

function carriedThinking(
  thinking: string,
  metadata: CollectedBlock['metadata'],
): AnthropicBlock | undefined {
  const signature = packReasoning(metadata) ?? ''
  return thinking === '' && signature === '' ? undefined : { type: 'thinking', thinking, signature }
}

function stopFields({ stopReason, metadata }: MessageStopEvent['delta']): {
  stop_reason: string
  stop_sequence: string | null
} {
  return {
    stop_reason: fromStopReason(stopReason),
    stop_sequence: textOf(metadata?.['anthropic']?.['stop_sequence']) ?? null,
  }
}

/**
 * Writes the events of one message as server-sent events. A block whose type is known only at its end
 * (redacted thinking, a native block) is started at its end, so blocks are numbered in the order of
 * writing. Vendor fields of a call are dropped, because they are known only after its start was written.
 */
class AnthropicEncoder implements WireEncoder {
  readonly #context: EncodeContext
  readonly #collector = new BlockCollector()
  /** For each block that has started, the index that the client sees. */
  readonly #indexes = new Map<number, number>()

  constructor(context: EncodeContext) {
    this.#context = context
  }

  push(event: StreamEvent): string {
    switch (event.type) {
      case 'text_delta':
      case 'object_delta':
        return this.#delta(event.index, { type: 'text_delta', text: event.delta.text })
      case 'message_start':
        return frame({ type: 'message_start', message: emptyMessage(this.#context) })
      case 'message_stop':
        return this.#stopMessage(event.delta)
      case 'content_block_start':
      case 'content_block_stop':
      case 'reasoning_delta':
      case 'tool_call_delta':
      case 'image_delta':
      case 'audio_delta':
      case 'video_delta': {
        const block = this.#collector.push(event)
        return block ? this.#block(event, block) : ''
      }
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
    return frame({ type: 'ping' })
  }

  fail(error: ServerError): string {
    return frame({ ...errorBody(error), type: 'error' })
  }

  #block(event: StreamEvent, block: CollectedBlock): string {
    const { index } = event
    switch (event.type) {
      case 'content_block_start':
        if (block.kind === 'text' || block.kind === 'object') return this.#start(index, emptyText)
        return block.kind === 'tool_call' ? this.#start(index, encodeBlock(block)!) : ''
      case 'reasoning_delta': {
        const startEvent = this.#indexes.has(index) ? '' : this.#start(index, emptyThinking)
        return (
          startEvent + this.#delta(index, { type: 'thinking_delta', thinking: event.delta.text })
        )
      }
      case 'tool_call_delta':
        return this.#delta(index, {
          type: 'input_json_delta',
          partial_json: event.delta.argumentsJson,
        })
      case 'content_block_stop':
        return this.#stop(index, block)
      default:
        return ''
    }
  }

  #stop(index: number, block: CollectedBlock): string {
    const native = nativeOf(block.metadata, 'anthropic', API)
    let text = ''
    if (!this.#indexes.has(index)) {
      const whole = encodeBlock(block)
      if (!whole) return ''
      text = this.#start(index, whole.type === 'thinking' ? emptyThinking : whole)
    }
    for (const citation of block.kind === 'text' ? listOf(native?.['citations']) : []) {
      text += this.#delta(index, { type: 'citations_delta', citation })
    }
    const signature =
      block.kind === 'reasoning'
        ? native
          ? textOf(native['signature'])
          : packReasoning(block.metadata)
        : undefined
    if (signature) text += this.#delta(index, { type: 'signature_delta', signature })
    return text + frame({ type: 'content_block_stop', index: this.#indexes.get(index)! })
  }

  #start(index: number, content_block: AnthropicBlock): string {
    const own = this.#indexes.size
    this.#indexes.set(index, own)
    return frame({ type: 'content_block_start', index: own, content_block })
  }

  #delta(index: number, delta: JsonObject): string {
    return frame({ type: 'content_block_delta', index: this.#indexes.get(index) ?? 0, delta })
  }

  #stopMessage(stop: MessageStopEvent['delta']): string {
    const usage = fromUsage(stop.usage)
    return (
      frame({ type: 'message_delta', delta: stopFields(stop), usage }) +
      frame({ type: 'message_stop' })
    )
  }
}

const emptyText: AnthropicBlock = { type: 'text', text: '' }
const emptyThinking: AnthropicBlock = { type: 'thinking', thinking: '', signature: '' }

function frame(event: { readonly type: string } & Readonly<Record<string, JsonValue>>): string {
  return encodeSse({ event: event.type, data: JSON.stringify(event) })
}
