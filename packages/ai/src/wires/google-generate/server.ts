import { encodeSse, type JsonObject, type JsonValue } from '@skein/base'
import { readRequest } from '../wire-error.ts'
import type { EncodeContext, ServerError, WireEncoder, WireServer } from '../wire-server.ts'
import { encodeError } from './error.ts'
import { decodeRequest } from './server-request.ts'
import { API, type GooglePart } from './types.ts'
import type { MessageStopEvent, StreamEvent } from '../../contract/event.ts'
import { parseArguments } from '../../contract/parse-arguments.ts'
import {
  BlockCollector,
  collectBlocks,
  type CollectedBlock,
  mediaBytes,
} from '../collect-blocks.ts'
import { googleErrorBody } from '../google-error.ts'
import { bytesSource } from '../media.ts'
import { nativeOf } from '../metadata.ts'
import { objectOf, without } from '../read-json.ts'
import { finishReasonOf } from './stream.ts'
import { mediaPart } from './request.ts'
import { fromUsage } from './usage.ts'

/** `generateContent` and `streamGenerateContent?alt=sse` for servers: one candidate per answer. */
export const googleGenerateServer: WireServer = {
  name: API,
  decodeRequest: (body, route) => readRequest('google', () => decodeRequest(body, route)),
  encodeResponse,
  createEncoder: (context) => new GoogleEncoder(context),
  encodeError,
}

/** Writes a complete answer. */
function encodeResponse(events: readonly StreamEvent[], context: EncodeContext): JsonObject {
  const { blocks, stop } = collectBlocks(events)
  const parts = blocks.map(encodePart).filter((part) => part !== undefined)
  return response(context, parts, stop)
}

function response(
  { id, request }: EncodeContext,
  parts: readonly GooglePart[],
  stop?: MessageStopEvent['delta'],
): JsonObject {
  const candidate: Record<string, JsonValue> = { content: { role: 'model', parts }, index: 0 }
  if (stop) candidate['finishReason'] = finishReasonOf(stop.stopReason)
  return {
    candidates: [candidate],
    usageMetadata: stop && fromUsage(stop.usage),
    modelVersion: request.modelId,
    responseId: id,
  }
}

const functionCallKey = new Set(['functionCall'])

/**
 * Writes a finished block as a part; undefined for native blocks of other vendors and media without
 * data.
 */
function encodePart(block: CollectedBlock): GooglePart | undefined {
  const native = nativeOf(block.metadata, 'google', API)
  switch (block.kind) {
    case 'text':
    case 'object':
      return { text: block.text, ...native }
    case 'reasoning':
      return { text: block.text, thought: true, ...native }
    case 'tool_call': {
      const { toolCallId = '', toolName = '' } = block.start
      const isGenerated = block.metadata?.['google']?.['generatedId'] === true
      const functionCall = {
        ...objectOf(native?.['functionCall']),
        id: isGenerated ? undefined : toolCallId,
        name: toolName,
        args: parseArguments(block.text).arguments ?? {},
      }
      return { functionCall, ...without(native ?? {}, functionCallKey) }
    }
    case 'native':
      return native
    case 'image':
    case 'audio':
    case 'video': {
      const mimeType = block.media.at(-1)?.mimeType
      if (mimeType === undefined) return undefined
      return { ...mediaPart(bytesSource({ data: mediaBytes(block), mimeType })), ...native }
    }
    default:
      return block.kind satisfies never
  }
}

/**
 * Writes the events of one message as frames. Text is written as it arrives; a signature known only at
 * the end of its block follows in a part with empty text, as the API itself does it.
 */
class GoogleEncoder implements WireEncoder {
  readonly #context: EncodeContext
  readonly #collector = new BlockCollector()

  constructor(context: EncodeContext) {
    this.#context = context
  }

  push(event: StreamEvent): string {
    switch (event.type) {
      case 'text_delta':
      case 'object_delta':
        return this.#frame({ text: event.delta.text })
      case 'reasoning_delta':
        return this.#frame({ text: event.delta.text, thought: true })
      case 'message_stop':
        return sse(response(this.#context, [], event.delta))
      case 'content_block_stop': {
        const block = this.#collector.push(event)
        return block ? this.#stop(block) : ''
      }
      case 'content_block_start':
      case 'tool_call_delta':
      case 'image_delta':
      case 'audio_delta':
      case 'video_delta':
        this.#collector.push(event)
        return ''
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
    return ': ping\n\n'
  }

  fail(error: ServerError): string {
    return sse(googleErrorBody(error))
  }

  /**
   * Writes the end of a block. Text was already sent piece by piece, so only its signature is written,
   * if any.
   */
  #stop(block: CollectedBlock): string {
    const isText = block.kind === 'text' || block.kind === 'object' || block.kind === 'reasoning'
    if (isText && !nativeOf(block.metadata, 'google', API)) return ''
    const part = encodePart(block)
    return part ? this.#frame(part) : ''
  }

  #frame(part: GooglePart): string {
    return sse(response(this.#context, [part]))
  }
}

function sse(body: JsonObject): string {
  return encodeSse({ data: JSON.stringify(body) })
}
