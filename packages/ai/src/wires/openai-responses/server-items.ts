import { encodeBase64, type JsonObject } from '@skein/base'
import type { ProviderMetadata } from '../../contract/content.ts'
import { packReasoning } from '../carried-reasoning.ts'
import { objectOf } from '../read-json.ts'
import { clientItemOf } from './client-items.ts'
import type { ContentBlockStartEvent, StreamEvent } from '../../contract/event.ts'

/** Emits one event of the stream; the encoder adds the sequence number and the output index. */
export type Emit = (type: string, fields: JsonObject) => void
/** An output item while its block is written. */
export interface WrittenItem {
  delta(event: StreamEvent, emit: Emit): void
  /** Returns the finished item, after emitting the item's own closing events. */
  close(metadata: ProviderMetadata | undefined, emit: Emit): JsonObject
}
/**
 * Starts the item of a block; undefined for blocks that Responses cannot express. An item keeps the id that its vendor
 * gave it: clients check that it stays the same, and the vendor knows its items by it.
 */
export function writeItem(
  { block, name, itemId, toolCallId = '', toolName = '' }: ContentBlockStartEvent['delta'],
  id: string,
  emit: Emit,
): WrittenItem | undefined {
  switch (block) {
    case 'text':
    case 'object':
      return new WrittenText(`msg_${id}`, emit)
    case 'reasoning':
      return new WrittenReasoning(itemId ?? `rs_${id}`, emit)
    case 'tool_call':
      return new WrittenCall(
        { id: itemId ?? `fc_${id}`, call_id: toolCallId, name: toolName },
        emit,
      )
    case 'image':
      return new WrittenImage(`ig_${id}`, emit)
    case 'native':
      return new WrittenNative({ type: name ?? 'unknown', id: itemId ?? `item_${id}` }, emit)
    case 'audio':
    case 'video':
      return undefined
    default:
      return block satisfies never
  }
}
/** Returns the metadata that the decoder of Responses stored on a block, whichever provider the block came from. */
function carriedFields(metadata: ProviderMetadata | undefined): JsonObject | undefined {
  for (const own of Object.values(metadata ?? {})) {
    if (own['api'] === 'openai-responses') return own
  }
  return undefined
}
class WrittenText implements WrittenItem {
  readonly #id: string
  readonly #pieces: string[] = []

  constructor(id: string, emit: Emit) {
    this.#id = id
    emit('response.output_item.added', { item: this.#item([], 'in_progress') })
    const part = { type: 'output_text', text: '', annotations: [] }
    emit('response.content_part.added', { item_id: id, content_index: 0, part })
  }

  delta(event: StreamEvent, emit: Emit): void {
    if (event.type !== 'text_delta' && event.type !== 'object_delta') return
    const { text } = event.delta
    this.#pieces.push(text)
    const fields = { item_id: this.#id, content_index: 0, delta: text, logprobs: [] }
    emit('response.output_text.delta', fields)
  }

  close(metadata: ProviderMetadata | undefined, emit: Emit): JsonObject {
    const own = carriedFields(metadata)
    const text = this.#pieces.join('')
    const native = objectOf(own?.['native']) ?? {}
    const part: JsonObject =
      native['type'] === 'refusal'
        ? { type: 'refusal', refusal: text }
        : { type: 'output_text', text, annotations: [], ...native }
    const place = { item_id: this.#id, content_index: 0 }
    emit('response.output_text.done', { ...place, text, logprobs: [] })
    emit('response.content_part.done', { ...place, part })
    return { ...objectOf(own?.['item']), ...this.#item([part], 'completed') }
  }

  #item(content: readonly JsonObject[], status: string): JsonObject {
    return { type: 'message', id: this.#id, status, role: 'assistant', content }
  }
}
class WrittenReasoning implements WrittenItem {
  readonly #id: string
  readonly #pieces: string[] = []

  constructor(id: string, emit: Emit) {
    this.#id = id
    emit('response.output_item.added', { item: { type: 'reasoning', id, summary: [] } })
  }

  delta(event: StreamEvent, emit: Emit): void {
    if (event.type !== 'reasoning_delta') return
    const place = { item_id: this.#id, summary_index: 0 }
    if (this.#pieces.length === 0) {
      const part = { type: 'summary_text', text: '' }
      emit('response.reasoning_summary_part.added', { ...place, part })
    }
    this.#pieces.push(event.delta.text)
    emit('response.reasoning_summary_text.delta', { ...place, delta: event.delta.text })
  }

  close(metadata: ProviderMetadata | undefined, emit: Emit): JsonObject {
    const text = this.#pieces.join('')
    const place = { item_id: this.#id, summary_index: 0 }
    const part = { type: 'summary_text', text }
    if (this.#pieces.length > 0) {
      emit('response.reasoning_summary_text.done', { ...place, text })
      emit('response.reasoning_summary_part.done', { ...place, part })
    }
    const summary = this.#pieces.length > 0 ? [part] : []
    const native = objectOf(carriedFields(metadata)?.['native'])
    if (native) return native
    // Reasoning of another vendor carries what that vendor needs in the place of OpenAI's encrypted content.
    const encrypted_content = packReasoning(metadata)
    return { type: 'reasoning', id: this.#id, summary, encrypted_content }
  }
}
class WrittenCall implements WrittenItem {
  readonly #fields: JsonObject
  readonly #pieces: string[] = []

  constructor(fields: JsonObject, emit: Emit) {
    this.#fields = { type: 'function_call', ...fields }
    const item = { ...this.#fields, arguments: '', status: 'in_progress' }
    emit('response.output_item.added', { item })
  }

  delta(event: StreamEvent, emit: Emit): void {
    if (event.type !== 'tool_call_delta' || event.delta.argumentsJson === '') return
    const { argumentsJson: delta } = event.delta
    this.#pieces.push(delta)
    emit('response.function_call_arguments.delta', { item_id: this.#fields['id']!, delta })
  }

  close(metadata: ProviderMetadata | undefined, emit: Emit): JsonObject {
    const text = this.#pieces.join('')
    // A call of a tool that OpenAI defines goes to a client of OpenAI as the item that it was.
    const native = objectOf(carriedFields(metadata)?.['native'])
    if (clientItemOf(native)) return native!
    const item_id = this.#fields['id']!
    emit('response.function_call_arguments.done', { item_id, arguments: text })
    return { ...this.#fields, arguments: text, status: 'completed' }
  }
}
class WrittenImage implements WrittenItem {
  readonly #id: string
  #previews = 0
  #result: JsonObject = { result: null }

  constructor(id: string, emit: Emit) {
    this.#id = id
    const item = { type: 'image_generation_call', id, status: 'in_progress', result: null }
    emit('response.output_item.added', { item })
  }

  delta(event: StreamEvent, emit: Emit): void {
    if (event.type !== 'image_delta') return
    const { data, mimeType, isPartial } = event.delta
    const base64 = encodeBase64(data)
    const output_format = mimeType === 'image/svg+xml' ? 'svg' : mimeType.replace('image/', '')
    if (!isPartial) this.#result = { result: base64, output_format }
    else {
      emit('response.image_generation_call.partial_image', {
        item_id: this.#id,
        partial_image_index: this.#previews++,
        partial_image_b64: base64,
        output_format,
      })
    }
  }

  close(): JsonObject {
    return {
      type: 'image_generation_call',
      id: this.#id,
      status: 'completed',
      ...this.#result,
    }
  }
}
/**
 * Writes a native block: unchanged if it came from a Responses API, otherwise only its name.
 */
class WrittenNative implements WrittenItem {
  readonly #item: JsonObject

  constructor(item: JsonObject, emit: Emit) {
    this.#item = item
    emit('response.output_item.added', { item })
  }

  delta(): void {}

  close(metadata: ProviderMetadata | undefined): JsonObject {
    return objectOf(carriedFields(metadata)?.['native']) ?? this.#item
  }
}
