import { encodeBase64, type JsonObject } from '@skein/base'
import type { StreamEvent } from '../../contract/event.ts'
import { parseArguments } from '../../contract/parse-arguments.ts'
import {
  BlockCollector,
  collectBlocks,
  type CollectedBlock,
  mediaBytes,
} from '../collect-blocks.ts'
import { nativeOf } from '../metadata.ts'
import { readRequest } from '../wire-error.ts'
import type { EncodeContext, ServerError, WireEncoder, WireServer } from '../wire-server.ts'
import { encodeError, exceptionOf } from './error.ts'
import { EXCEPTION, frameText, toBytes } from './frames.ts'
import { decodeRequest } from './server-request.ts'
import { stopReasonOf } from './stream.ts'
import { API, type BedrockBlock } from './types.ts'
import { fromUsage } from './usage.ts'

/** `POST /model/{id}/converse` and `/converse-stream` for servers. */
export const bedrockConverseServer: WireServer = {
  name: API,
  decodeRequest: (body, route) => readRequest('bedrock', () => decodeRequest(body, route)),
  encodeResponse,
  createEncoder: (context) => new BedrockEncoder(context),
  encodeError,
  binary: { toBytes },
}

/** Writes a complete answer. */
function encodeResponse(events: readonly StreamEvent[], _context: EncodeContext): JsonObject {
  const { blocks, stop } = collectBlocks(events)
  const content = blocks.map(encodeBlock).filter((block) => block !== undefined)
  return {
    output: { message: { role: 'assistant', content } },
    stopReason: stop && stopReasonOf(stop.stopReason),
    usage: stop && fromUsage(stop.usage),
    metrics: { latencyMs: 1 },
  }
}

/** Writes a finished block; undefined for native blocks of other vendors, and media that answers cannot have. */
function encodeBlock(block: CollectedBlock): BedrockBlock | undefined {
  const native = nativeOf(block.metadata, 'bedrock', API)
  switch (block.kind) {
    case 'text':
    case 'object': {
      const citations = native?.['citations']
      if (citations === undefined) return { text: block.text }
      return { citationsContent: { content: [{ text: block.text }], citations } }
    }
    case 'reasoning':
      if (native?.['redactedContent'] !== undefined) return { reasoningContent: native }
      return { reasoningContent: { reasoningText: { text: block.text, ...native } } }
    case 'tool_call': {
      const { toolCallId = '', toolName = '' } = block.start
      const input = parseArguments(block.text).arguments ?? {}
      return { toolUse: { ...native, toolUseId: toolCallId, name: toolName, input } }
    }
    case 'native':
      return native
    case 'image': {
      const format = block.media.at(-1)?.mimeType.split('/')[1]
      if (format === undefined) return undefined
      return { image: { format, source: { bytes: encodeBase64(mediaBytes(block)) } } }
    }
    case 'audio':
    case 'video':
      return undefined
    default:
      return block.kind satisfies never
  }
}

/** Writes the events of one message as frames; `toBytes` makes them binary. */
class BedrockEncoder implements WireEncoder {
  readonly #collector = new BlockCollector()

  constructor(_context: EncodeContext) {}

  push(event: StreamEvent): string {
    const { index } = event
    switch (event.type) {
      case 'message_start':
        return frame('messageStart', { role: 'assistant' })
      case 'content_block_start': {
        const block = this.#collector.push(event)!
        if (block.kind !== 'tool_call') return ''
        const { toolCallId = '', toolName = '' } = block.start
        const start = { toolUse: { toolUseId: toolCallId, name: toolName } }
        return frame('contentBlockStart', { contentBlockIndex: index, start })
      }
      case 'text_delta':
      case 'object_delta':
        this.#collector.push(event)
        return delta(index, { text: event.delta.text })
      case 'reasoning_delta':
        this.#collector.push(event)
        return delta(index, { reasoningContent: { text: event.delta.text } })
      case 'tool_call_delta':
        this.#collector.push(event)
        return delta(index, { toolUse: { input: event.delta.argumentsJson } })
      case 'image_delta':
      case 'audio_delta':
      case 'video_delta':
        this.#collector.push(event)
        return ''
      case 'content_block_stop': {
        const block = this.#collector.push(event)
        return block ? stop(index, block) : ''
      }
      case 'message_stop': {
        const { stopReason, usage } = event.delta
        return (
          frame('messageStop', { stopReason: stopReasonOf(stopReason) }) +
          frame('metadata', { usage: fromUsage(usage), metrics: { latencyMs: 1 } })
        )
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

  /** The format has no frame that clients ignore. */
  ping(): string {
    return ''
  }

  fail(error: ServerError): string {
    const { name, body } = exceptionOf(error)
    return frame(EXCEPTION + name[0]!.toLowerCase() + name.slice(1), body)
  }
}

/** Writes what is known only at the end of a block, and its end. */
function stop(index: number, block: CollectedBlock): string {
  const end = frame('contentBlockStop', { contentBlockIndex: index })
  const native = nativeOf(block.metadata, 'bedrock', API)
  switch (block.kind) {
    case 'text':
    case 'object': {
      const citations = native?.['citations']
      const deltas = Array.isArray(citations)
        ? citations.map((citation) => delta(index, { citation })).join('')
        : ''
      return deltas + end
    }
    case 'reasoning': {
      const deltas = Object.entries(native ?? {}).map(([name, value]) =>
        delta(index, { reasoningContent: { [name]: value } }),
      )
      return deltas.join('') + end
    }
    case 'tool_call':
      return end
    case 'image': {
      const image = encodeBlock(block)
      const { format, source } = (image?.['image'] ?? {}) as JsonObject
      if (format === undefined) return ''
      const start = { contentBlockIndex: index, start: { image: { format } } }
      return frame('contentBlockStart', start) + delta(index, { image: { source } }) + end
    }
    case 'native':
    case 'audio':
    case 'video':
      return '' // a stream has no place for them
    default:
      return block.kind satisfies never
  }
}

function delta(contentBlockIndex: number, fields: JsonObject): string {
  return frame('contentBlockDelta', { contentBlockIndex, delta: fields })
}

function frame(type: string, body: JsonObject): string {
  return frameText(type, JSON.stringify(body))
}
