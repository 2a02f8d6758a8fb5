import { encodeSse, type JsonObject } from '@skein/base'
import { type Emit, type WrittenItem, writeItem } from './server-items.ts'
import { encodeError, errorBody } from '../openai-server-error.ts'
import { readRequest } from '../wire-error.ts'
import type { EncodeContext, ServerError, WireEncoder, WireServer } from '../wire-server.ts'
import { decodeRequest } from './server-request.ts'
import type { MessageStopEvent, StreamEvent } from '../../contract/event.ts'
import { objectOf } from '../read-json.ts'
import { incompleteReason } from './stop-reason.ts'
import { fromUsage } from './usage.ts'

/**
 * Responses for servers: reads requests of its clients, and writes one message per answer. Items that a
 * client sends back are kept unchanged under `metadata.openai`.
 */
export const openaiResponsesServer: WireServer = {
  name: 'openai-responses',
  decodeRequest: (body) => readRequest('openai', () => decodeRequest(body)),
  encodeResponse,
  createEncoder: (context) => new ResponsesEncoder(context),
  encodeError,
}

/** Writes the events of one message as events of a response; `response` is the complete response so far. */
class ResponsesEncoder implements WireEncoder {
  readonly #context: EncodeContext
  /** Open items by block index; blocks that Responses cannot express are missing. */
  readonly #open = new Map<number, { readonly item: WrittenItem; readonly position: number }>()
  readonly #output: (JsonObject | undefined)[] = []
  #stop: MessageStopEvent['delta'] | undefined
  #sequence = 0

  constructor(context: EncodeContext) {
    this.#context = context
  }

  push(event: StreamEvent): string {
    let text = ''
    const emit: Emit = (type, fields) => (text += this.#frame(type, fields))
    this.write(event, emit)
    return text
  }

  /** Returns nothing, because the terminal event of a response was already written by `push`. */
  end(): string {
    return ''
  }

  ping(): string {
    return ': ping\n\n'
  }

  fail(error: ServerError): string {
    const { message = '', code = null } = objectOf(errorBody(error)['error']) ?? {}
    return this.#frame('error', { code, message, param: null })
  }

  write(event: StreamEvent, emit: Emit): void {
    switch (event.type) {
      case 'message_start':
        emit('response.created', { response: this.response })
        emit('response.in_progress', { response: this.response })
        return
      case 'content_block_start':
        return this.#openItem(event, emit)
      case 'content_block_stop':
        return this.#closeItem(event, emit)
      case 'message_stop':
        this.#stop = event.delta
        emit(`response.${this.#status}`, { response: this.response })
        return
      case 'tool_execution_start':
      case 'tool_execution_end':
        return
      case 'text_delta':
      case 'object_delta':
      case 'reasoning_delta':
      case 'tool_call_delta':
      case 'image_delta':
      case 'audio_delta':
      case 'video_delta': {
        const open = this.#open.get(event.index)
        open?.item.delta(event, this.#placed(emit, open.position))
        return
      }
      default:
        event satisfies never
    }
  }

  get response(): JsonObject {
    const { id, createdAt, request, fields } = this.#context
    const reason = this.#reason
    return {
      id: `resp_${id}`,
      object: 'response',
      created_at: Math.floor(createdAt / 1000),
      status: this.#status,
      error: null,
      incomplete_details: reason === undefined ? null : { reason },
      instructions: request.system ?? null,
      metadata: {},
      model: request.modelId,
      output: this.#output.filter((item) => item !== undefined),
      parallel_tool_calls: true,
      temperature: null,
      tool_choice: 'auto',
      tools: [],
      top_p: null,
      usage: this.#stop ? fromUsage(this.#stop.usage) : null,
      ...fields,
    }
  }

  get #status(): 'in_progress' | 'completed' | 'incomplete' {
    if (!this.#stop) return 'in_progress'
    return this.#reason === undefined ? 'completed' : 'incomplete'
  }

  get #reason(): string | undefined {
    return incompleteReason(this.#stop?.stopReason)
  }

  #openItem({ index, delta }: StreamEvent & { type: 'content_block_start' }, emit: Emit): void {
    const position = this.#output.length
    const id = `${this.#context.id}_${position}`
    const item = writeItem(delta, id, this.#placed(emit, position))
    if (!item) return
    this.#output.push(undefined)
    this.#open.set(index, { item, position })
  }

  #closeItem({ index, delta }: StreamEvent & { type: 'content_block_stop' }, emit: Emit): void {
    const open = this.#open.get(index)
    if (!open) return
    this.#open.delete(index)
    const emitAt = this.#placed(emit, open.position)
    const item = open.item.close(delta.metadata, emitAt)
    this.#output[open.position] = item
    emitAt('response.output_item.done', { item })
  }

  #placed(emit: Emit, output_index: number): Emit {
    return (type, fields) => emit(type, { output_index, ...fields })
  }

  #frame(type: string, fields: JsonObject): string {
    const data = JSON.stringify({ type, sequence_number: this.#sequence++, ...fields })
    return encodeSse({ event: type, data })
  }
}

/** Writes a complete response with the same encoder, without the stream events. */
function encodeResponse(events: readonly StreamEvent[], context: EncodeContext): JsonObject {
  const encoder = new ResponsesEncoder(context)
  for (const event of events) encoder.write(event, () => {})
  return encoder.response
}
