import { encodeSse, type JsonObject, type JsonValue } from '@skein/base'
import type { MessageStopEvent, StreamEvent } from '../../contract/event.ts'
import { parseArguments } from '../../contract/tool.ts'
import {
  BlockCollector,
  collectBlocks,
  mediaBytes,
  type CollectedBlock,
} from '../collect-blocks.ts'
import { nativeOf } from '../native.ts'
import { objectOf, without } from '../read-json.ts'
import type { EncodeContext, ServerError, WireEncoder } from '../wire-server.ts'
import { finishReasonOf } from './finish-reason.ts'
import { bytesSource, mediaPart } from './media-part.ts'
import { errorBody } from './server-error.ts'
import { API, type GooglePart } from './types.ts'
import { fromUsage } from './usage.ts'

/** A whole answer. */
export function encodeResponse(events: readonly StreamEvent[], context: EncodeContext): JsonObject {
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
    ...(stop && { usageMetadata: fromUsage(stop.usage) }),
    modelVersion: request.modelId,
    responseId: id,
  }
}

/** A finished block; undefined for blocks of other vendors. */
function encodePart(block: CollectedBlock): GooglePart | undefined {
  const native = nativeOf(block.metadata, 'google', API)
  switch (block.kind) {
    case 'text':
    case 'object':
      return { text: block.text, ...native }
    case 'reasoning':
      return { text: block.text, thought: true, ...native }
    case 'tool_call':
      return encodeCall(block, native ?? {})
    case 'native':
      return native
    default: {
      const mimeType = block.media.at(-1)?.mimeType
      if (mimeType === undefined) return undefined
      return { ...mediaPart(bytesSource({ data: mediaBytes(block), mimeType })), ...native }
    }
  }
}

function encodeCall({ start, text, metadata }: CollectedBlock, native: JsonObject): GooglePart {
  const { toolCallId = '', toolName = '' } = start
  const isGenerated = metadata?.['google']?.['generatedId'] === true
  const functionCall = {
    ...objectOf(native['functionCall']),
    ...(!isGenerated && { id: toolCallId }),
    name: toolName,
    args: parseArguments(text).arguments ?? {},
  }
  return { functionCall, ...without(native, new Set(['functionCall'])) }
}

/**
 * Writes the events of one message as frames. Text goes out as it comes; a signature that shows at
 * the end of its block follows in an empty part, as the API itself does it.
 */
export class GoogleEncoder implements WireEncoder {
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
      default: {
        const block = this.#collector.push(event)
        return event.type === 'content_block_stop' && block ? this.#stop(block) : ''
      }
    }
  }

  end(): string {
    return ''
  }

  fail(error: ServerError): string {
    return sse(errorBody(error))
  }

  /** Of a text only its signature is left to say: what was sent is not in the collector. */
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
