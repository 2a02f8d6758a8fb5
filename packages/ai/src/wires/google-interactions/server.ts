import { encodeSse, type JsonObject, type JsonValue } from '@skein/base'
import type { MessageStopEvent, StreamEvent } from '../../contract/event.ts'
import { parseArguments } from '../../contract/parse-arguments.ts'
import {
  BlockCollector,
  collectBlocks,
  type CollectedBlock,
  mediaBytes,
} from '../collect-blocks.ts'
import { bytesSource } from '../media.ts'
import { nativeOf } from '../metadata.ts'
import { isEmpty } from '../read-json.ts'
import { readRequest } from '../wire-error.ts'
import type { EncodeContext, ServerError, WireEncoder, WireServer } from '../wire-server.ts'
import { encodeError, errorBody } from './error.ts'
import { media } from './request.ts'
import { decodeRequest } from './server-request.ts'
import { statusOf } from './stream.ts'
import { API, contentTypes, type InteractionStep } from './types.ts'
import { fromUsage } from './usage.ts'

/** `POST /interactions` for servers. Nothing is stored, so an interaction cannot be continued by its id. */
export const googleInteractionsServer: WireServer = {
  name: API,
  decodeRequest: (body) => readRequest('google', () => decodeRequest(body)),
  encodeResponse,
  createEncoder: (context) => new InteractionsEncoder(context),
  encodeError,
}

/** Writes a complete answer. */
function encodeResponse(events: readonly StreamEvent[], context: EncodeContext): JsonObject {
  const { blocks, stop } = collectBlocks(events)
  const steps: InteractionStep[] = []
  let content: JsonObject[] = []
  for (const block of blocks) {
    const item = encodeBlock(block)
    if (!item) continue
    if (!contentTypes.has(item['type'])) {
      content = []
      steps.push(item)
      continue
    }
    // Neighbouring pieces of content are one step.
    if (content.length === 0) steps.push({ type: 'model_output', content })
    content.push(item)
  }
  return { ...interaction(context, stop), steps, usage: stop && fromUsage(stop.usage) }
}

function interaction(
  { id, createdAt, request }: EncodeContext,
  stop: MessageStopEvent['delta'] | undefined,
): JsonObject {
  const created = new Date(createdAt).toISOString()
  const status = stop ? statusOf(stop.stopReason) : 'in_progress'
  const isFiltered = stop?.stopReason === 'content_filter' || stop?.stopReason === 'refusal'
  return {
    id,
    object: 'interaction',
    model: request.modelId,
    status,
    created,
    updated: created,
    errors: isFiltered ? [{ code: 'content_filtered', message: stop.rawStopReason ?? '' }] : undefined, // prettier-ignore
  }
}

/** Writes a finished block as a step or a content; undefined for native blocks of other vendors and media without data. */
function encodeBlock(block: CollectedBlock): JsonObject | undefined {
  const native = nativeOf(block.metadata, 'google', API)
  switch (block.kind) {
    case 'text':
    case 'object':
      return { type: 'text', text: block.text, ...native }
    case 'reasoning': {
      const summary = block.text === '' ? undefined : [{ type: 'text', text: block.text }]
      return { type: 'thought', summary, ...native }
    }
    case 'tool_call': {
      const args = parseArguments(block.text).arguments ?? {}
      return { ...callStart(block, native), arguments: args }
    }
    case 'native':
      return native
    case 'image':
    case 'audio':
    case 'video': {
      const mimeType = block.media.at(-1)?.mimeType
      if (mimeType === undefined) return undefined
      return { ...media(block.kind, bytesSource({ data: mediaBytes(block), mimeType })), ...native }
    }
    default:
      return block.kind satisfies never
  }
}

function callStart({ start }: CollectedBlock, native: JsonObject | undefined): InteractionStep {
  const { toolCallId = '', toolName = '' } = start
  return { type: 'function_call', id: toolCallId, name: toolName, arguments: {}, ...native }
}

/** Writes the events of one message as events of the API. Each block is a step with the index of the block. */
class InteractionsEncoder implements WireEncoder {
  readonly #context: EncodeContext
  readonly #collector = new BlockCollector()

  constructor(context: EncodeContext) {
    this.#context = context
  }

  push(event: StreamEvent): string {
    const { index } = event
    switch (event.type) {
      case 'message_start':
        return sse('interaction.created', { interaction: interaction(this.#context, undefined) })
      case 'content_block_start': {
        const block = this.#collector.push(event)!
        const step = startOf(block)
        return step ? sse('step.start', { index, step }) : ''
      }
      case 'text_delta':
      case 'object_delta':
        this.#collector.push(event)
        return delta(index, { type: 'text', text: event.delta.text })
      case 'reasoning_delta':
        this.#collector.push(event)
        return delta(index, {
          type: 'thought_summary',
          content: { type: 'text', text: event.delta.text },
        })
      case 'tool_call_delta':
        this.#collector.push(event)
        return delta(index, { type: 'arguments_delta', arguments: event.delta.argumentsJson })
      case 'content_block_stop': {
        const block = this.#collector.push(event)
        return block ? this.#stop(index, block) : ''
      }
      case 'message_stop': {
        const usage = fromUsage(event.delta.usage)
        const completed = { ...interaction(this.#context, event.delta), usage }
        return sse('interaction.completed', { interaction: completed })
      }
      case 'image_delta':
      case 'audio_delta':
      case 'video_delta':
        this.#collector.push(event)
        return ''
      case 'tool_execution_start':
      case 'tool_execution_end':
        return ''
      default:
        return event satisfies never
    }
  }

  end(): string {
    return encodeSse({ event: 'done', data: '[DONE]' })
  }

  ping(): string {
    return ': ping\n\n'
  }

  fail(error: ServerError): string {
    return sse('error', errorBody(error))
  }

  /** Writes what is known only at the end of a block, and the end of its step. */
  #stop(index: number, block: CollectedBlock): string {
    const stop = sse('step.stop', { index })
    const native = nativeOf(block.metadata, 'google', API)
    switch (block.kind) {
      case 'text':
      case 'object':
        return native?.['annotations'] === undefined
          ? stop
          : delta(index, { type: 'text_annotation_delta', annotations: native['annotations'] }) +
              stop
      case 'reasoning':
        return native?.['signature'] === undefined
          ? stop
          : delta(index, { type: 'thought_signature', signature: native['signature'] }) + stop
      case 'tool_call':
        return stop
      case 'native': {
        if (!native) return ''
        const step = contentTypes.has(native['type'])
          ? { type: 'model_output', content: [native] }
          : native
        return sse('step.start', { index, step }) + stop
      }
      case 'image':
      case 'audio':
      case 'video': {
        const content = encodeBlock(block)
        return content ? delta(index, content) + stop : stop
      }
      default:
        return block.kind satisfies never
    }
  }
}

/** Returns the start of a block's step; undefined for a native block, which is written at its end. */
function startOf(block: CollectedBlock): InteractionStep | undefined {
  switch (block.kind) {
    case 'reasoning':
      return { type: 'thought' }
    case 'tool_call':
      return callStart(block, undefined)
    case 'native':
      return undefined
    case 'text':
    case 'object':
    case 'image':
    case 'audio':
    case 'video':
      return { type: 'model_output' }
    default:
      return block.kind satisfies never
  }
}

function delta(index: number, fields: Readonly<Record<string, JsonValue | undefined>>): string {
  return isEmpty(fields) ? '' : sse('step.delta', { index, delta: fields })
}

function sse(type: string, fields: JsonObject): string {
  return encodeSse({ event: type, data: JSON.stringify({ event_type: type, ...fields }) })
}
