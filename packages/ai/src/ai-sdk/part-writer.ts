import type { StreamEvent } from '../contract/event.ts'
import { BlockCollector, mediaBytes } from '../wires/collect-blocks.ts'
import { toProviderMetadata } from './provider-options.ts'
import type { AiSdkAnswerPart, AiSdkData } from './types.ts'

/** Converts the events of one answer to the parts of an AI SDK stream. */
export class PartWriter {
  readonly #collector: BlockCollector

  constructor() {
    this.#collector = new BlockCollector()
  }

  *write(event: StreamEvent): Generator<AiSdkAnswerPart> {
    const id = String(event.index)
    const block = this.#collector.push(event)
    switch (event.type) {
      case 'message_start': {
        const { id: responseId, model: modelId } = event.delta
        yield {
          type: 'response-metadata',
          ...(responseId !== undefined && { id: responseId }),
          ...(modelId !== undefined && { modelId }),
        }
        return
      }
      case 'content_block_start': {
        const { block: kind, toolCallId = '', toolName = '' } = event.delta
        if (kind === 'text' || kind === 'object') yield { type: 'text-start', id }
        if (kind === 'reasoning') yield { type: 'reasoning-start', id }
        if (kind === 'tool_call') yield { type: 'tool-input-start', id: toolCallId, toolName }
        return
      }
      case 'text_delta':
      case 'object_delta':
        yield { type: 'text-delta', id, delta: event.delta.text }
        return
      case 'reasoning_delta':
        yield { type: 'reasoning-delta', id, delta: event.delta.text }
        return
      case 'tool_call_delta': {
        const { toolCallId, argumentsJson: delta } = event.delta
        yield { type: 'tool-input-delta', id: toolCallId, delta }
        return
      }
      case 'content_block_stop': {
        const metadata = toProviderMetadata(event.delta.metadata)
        const more = metadata && { providerMetadata: metadata }
        const kind = block?.kind
        switch (kind) {
          case 'text':
          case 'object':
            yield { type: 'text-end', id, ...more }
            return
          case 'reasoning':
            yield { type: 'reasoning-end', id, ...more }
            return
          case 'tool_call':
            yield { type: 'tool-input-end', id: block!.start.toolCallId ?? '' }
            return
          case 'image':
          case 'audio':
          case 'video': {
            const last = block!.media.at(-1)
            if (!last) return
            const data: AiSdkData = last.url === undefined ? { type: 'data', data: mediaBytes(block!) } : { type: 'url', url: new URL(last.url) } // prettier-ignore
            yield { type: 'file', mediaType: last.mimeType, data, ...more }
            return
          }
          case 'native':
          case undefined:
            return
          default:
            kind satisfies never
            return
        }
      }
      case 'image_delta':
      case 'audio_delta':
      case 'video_delta':
      case 'message_stop':
      case 'tool_execution_start':
      case 'tool_execution_end':
        return // media end with their block, the rest is in the finish part
      default:
        event satisfies never
    }
  }
}
