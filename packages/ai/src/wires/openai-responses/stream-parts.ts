import type { JsonObject, JsonValue } from '@skein/base'
import { decodeLooseBase64 } from '../../media/bytes.ts'
import type { BlockKind, StreamEvent } from '../../contract/event.ts'
import type { Source } from '../../contract/turn.ts'
import { withNative } from '../metadata.ts'
import { listOf, objectOf, stringOf, textOf, without } from '../read-json.ts'
import { annotationSources } from '../sources.ts'
import { type ClientItem, clientItemOf, readClientCall } from './client-items.ts'
import type { DecodeContext, ValueUnwrapper } from '../wire.ts'

const api = 'openai-responses'

/** The state that the items of one message share. */
export interface MessageParts {
  readonly provider: string
  readonly unwrap: DecodeContext['unwrap']
  readonly kinds: BlockKind[]
  readonly sources: Source[]
  hasRefusal: boolean
  /** True if OpenAI runs the shell itself, in a container. */
  readonly hasHostedShell: boolean
}

/**
 * An output item while it is streamed. `close` receives the complete item and emits the events that are
 * still missing.
 */
export interface OpenItem {
  readonly id: string | undefined
  /** Adds a piece of text; `part` names the part of the item that it belongs to. */
  delta(text: string, part: ItemPart, events: StreamEvent[]): void
  close(item: JsonObject, events: StreamEvent[]): void
}

/** The part of an item that a piece of text or an image preview belongs to. */
export interface ItemPart {
  readonly type: 'text' | 'refusal' | 'summary' | 'arguments' | 'input' | 'preview'
  readonly index: number
  /** The format of the image, for parts of type `preview`. */
  readonly format?: string | undefined
}

/** Opens the block or blocks of an item that the vendor announced. */
export function openItem(item: JsonObject, parts: MessageParts, events: StreamEvent[]): OpenItem {
  switch (item['type']) {
    case 'message':
      return new OpenMessage(item, parts)
    case 'reasoning':
      return new OpenReasoning(item, parts, events)
    case 'function_call':
    case 'custom_tool_call':
      return new OpenCall(item, parts, events)
    case 'image_generation_call':
      return new OpenImage(item, parts)
    default: {
      const kind = clientItemOf(item)
      return kind && !(kind === 'shell_call' && parts.hasHostedShell)
        ? new OpenClientCall(kind, item, parts, events)
        : new OpenNative(item, parts, events)
    }
  }
}

function startBlock(
  parts: MessageParts,
  delta: Extract<StreamEvent, { type: 'content_block_start' }>['delta'],
  events: StreamEvent[],
): number {
  const index = parts.kinds.push(delta.block) - 1
  events.push({ type: 'content_block_start', index, delta })
  return index
}

function itemId(id: string | undefined): { readonly itemId?: string } {
  return id === undefined ? {} : { itemId: id }
}

interface OpenPart {
  readonly block: number
  readonly isRefusal: boolean
  readonly unwrapper: ValueUnwrapper | undefined
  /** The number of characters received of the vendor's text. */
  seen: number
}

const contentField = new Set(['content'])
const textFields = new Set(['text', 'refusal'])

/** A message item: each of its parts becomes a text block. */
class OpenMessage implements OpenItem {
  readonly id: string | undefined
  readonly #shared: MessageParts
  readonly #parts: (OpenPart | undefined)[] = []

  constructor(item: JsonObject, shared: MessageParts) {
    this.id = textOf(item['id'])
    this.#shared = shared
  }

  delta(text: string, { type, index }: ItemPart, events: StreamEvent[]): void {
    const part = this.#parts[index] ?? this.#open(index, type === 'refusal', events)
    part.seen += text.length
    const plain = part.unwrapper ? part.unwrapper.push(text) : text
    if (plain !== '') events.push({ type: 'text_delta', index: part.block, delta: { text: plain } })
  }

  close(item: JsonObject, events: StreamEvent[]): void {
    const about = without(item, contentField)
    listOf(item['content']).forEach((value, index) => {
      const fields = objectOf(value) ?? {}
      const isRefusal = fields['type'] === 'refusal'
      const text = stringOf(isRefusal ? fields['refusal'] : fields['text']) ?? ''
      const part = this.#parts[index] ?? this.#open(index, isRefusal, events)
      this.#close(index, part, text, { ...fields }, about, events)
    })
    // Closes streamed parts that the closing item does not repeat.
    this.#parts.forEach((part, index) => {
      if (part)
        this.#close(
          index,
          part,
          '',
          { type: part.isRefusal ? 'refusal' : 'output_text' },
          about,
          events,
        )
    })
  }

  #open(index: number, isRefusal: boolean, events: StreamEvent[]): OpenPart {
    if (isRefusal) this.#shared.hasRefusal = true
    const unwrapper = isRefusal ? undefined : this.#shared.unwrap?.()
    const block = startBlock(this.#shared, { block: 'text' }, events)
    return (this.#parts[index] = { block, isRefusal, unwrapper, seen: 0 })
  }

  #close(
    index: number,
    part: OpenPart,
    text: string,
    fields: JsonObject,
    about: JsonObject,
    events: StreamEvent[],
  ): void {
    const type = part.isRefusal ? 'refusal' : 'text'
    if (text.length > part.seen) this.delta(text.slice(part.seen), { type, index }, events)
    const rest = part.unwrapper?.end()
    if (rest) events.push({ type: 'text_delta', index: part.block, delta: { text: rest } })
    this.#shared.sources.push(...annotationSources(fields['annotations']))
    const native = without(fields, textFields)
    const metadata = withNative(this.#shared.provider, api, native, { item: about })
    events.push({ type: 'content_block_stop', index: part.block, delta: { metadata } })
    this.#parts[index] = undefined
  }
}

/** A reasoning item: its summaries and texts become one block, separated by blank lines. */
class OpenReasoning implements OpenItem {
  readonly id: string | undefined
  readonly #provider: string
  readonly #block: number
  #lastPart = ''

  constructor(item: JsonObject, shared: MessageParts, events: StreamEvent[]) {
    this.id = textOf(item['id'])
    this.#provider = shared.provider
    this.#block = startBlock(shared, { block: 'reasoning', ...itemId(this.id) }, events)
  }

  delta(text: string, { type, index }: ItemPart, events: StreamEvent[]): void {
    if (text === '') return
    const part = `${type}${index}`
    const isNext = this.#lastPart !== '' && this.#lastPart !== part
    this.#lastPart = part
    const delta = { text: isNext ? `\n\n${text}` : text }
    events.push({ type: 'reasoning_delta', index: this.#block, delta })
  }

  close(item: JsonObject, events: StreamEvent[]): void {
    if (this.#lastPart === '') {
      for (const field of ['summary', 'content']) {
        listOf(item[field]).forEach((part, index) => {
          const type = field === 'summary' ? 'summary' : 'text'
          this.delta(stringOf(objectOf(part)?.['text']) ?? '', { type, index }, events)
        })
      }
    }
    const metadata = withNative(this.#provider, api, item)
    events.push({ type: 'content_block_stop', index: this.#block, delta: { metadata } })
  }
}

/** A call of a function, or of a custom tool whose free text becomes `{ input }`. */
class OpenCall implements OpenItem {
  readonly id: string | undefined
  readonly #provider: string
  readonly #block: number
  readonly #isCustom: boolean
  readonly #call: { readonly toolCallId: string; readonly toolName: string }
  #seen = 0
  #hasDelta = false

  constructor(item: JsonObject, shared: MessageParts, events: StreamEvent[]) {
    this.id = textOf(item['id'])
    this.#provider = shared.provider
    this.#isCustom = item['type'] === 'custom_tool_call'
    this.#call = {
      toolCallId: textOf(item['call_id']) ?? this.id ?? '',
      toolName: textOf(item['name']) ?? '',
    }
    const start = { block: 'tool_call', ...this.#call, ...itemId(this.id) } as const
    this.#block = startBlock(shared, start, events)
    if (this.#isCustom) this.#send('{"input":"', events)
  }

  delta(text: string, _part: ItemPart, events: StreamEvent[]): void {
    if (text === '') return
    this.#seen += text.length
    // A surrogate pair that is split between two pieces is joined again when the JSON is parsed.
    this.#send(this.#isCustom ? JSON.stringify(text).slice(1, -1) : text, events)
  }

  close(item: JsonObject, events: StreamEvent[]): void {
    const field = this.#isCustom ? 'input' : 'arguments'
    const text = stringOf(item[field]) ?? ''
    if (text.length > this.#seen) {
      this.delta(text.slice(this.#seen), { type: field, index: 0 }, events)
    }
    // An input that was cut off must stay invalid JSON, so that its call never runs.
    if (this.#isCustom && item['status'] !== 'incomplete') this.#send('"}', events)
    if (!this.#hasDelta) this.#send('', events)
    const metadata = withNative(this.#provider, api, item)
    events.push({ type: 'content_block_stop', index: this.#block, delta: { metadata } })
  }

  #send(argumentsJson: string, events: StreamEvent[]): void {
    this.#hasDelta = true
    events.push({
      type: 'tool_call_delta',
      index: this.#block,
      delta: { ...this.#call, argumentsJson },
    })
  }
}

const resultField = new Set(['result'])

/** A generated image, with previews. Without previews and result it becomes a native block. */
class OpenImage implements OpenItem {
  readonly id: string | undefined
  readonly #shared: MessageParts
  #block = -1

  constructor(item: JsonObject, shared: MessageParts) {
    this.id = textOf(item['id'])
    this.#shared = shared
  }

  delta(base64: string, { format }: ItemPart, events: StreamEvent[]): void {
    this.#send(base64, format, true, events)
  }

  close(item: JsonObject, events: StreamEvent[]): void {
    const result = textOf(item['result'])
    if (result !== undefined) this.#send(result, item['output_format'], false, events)
    const name = 'image_generation_call'
    if (this.#block < 0) this.#block = startBlock(this.#shared, { block: 'native', name }, events)
    const native = result === undefined ? item : without(item, resultField)
    const metadata = withNative(this.#shared.provider, api, native)
    events.push({ type: 'content_block_stop', index: this.#block, delta: { metadata } })
  }

  #send(
    base64: string,
    format: JsonValue | undefined,
    isPartial: boolean,
    events: StreamEvent[],
  ): void {
    if (this.#block < 0) this.#block = startBlock(this.#shared, { block: 'image' }, events)
    const name = textOf(format) ?? 'png'
    const mimeType = name === 'svg' ? 'image/svg+xml' : `image/${name}`
    const data = decodeLooseBase64(base64)
    events.push({
      type: 'image_delta',
      index: this.#block,
      delta: isPartial ? { data, mimeType, isPartial } : { data, mimeType },
    })
  }
}

/** A call of a tool that OpenAI defines and the client runs. Its arguments are known when the item is complete. */
class OpenClientCall implements OpenItem {
  readonly id: string | undefined
  readonly #kind: ClientItem
  readonly #provider: string
  readonly #block: number
  readonly #call: { readonly toolCallId: string; readonly toolName: string }

  constructor(kind: ClientItem, item: JsonObject, shared: MessageParts, events: StreamEvent[]) {
    this.id = textOf(item['id'])
    this.#kind = kind
    this.#provider = shared.provider
    const { toolCallId, toolName } = readClientCall(kind, item)
    this.#call = { toolCallId, toolName }
    this.#block = startBlock(shared, { block: 'tool_call', ...this.#call }, events)
  }

  delta(): void {}

  close(item: JsonObject, events: StreamEvent[]): void {
    // An item that was cut off must not run, so its arguments stay invalid JSON.
    const isCut = item['status'] === 'incomplete'
    const argumentsJson = isCut ? '{' : JSON.stringify(readClientCall(this.#kind, item).arguments)
    const delta = { ...this.#call, argumentsJson }
    events.push({ type: 'tool_call_delta', index: this.#block, delta })
    const metadata = withNative(this.#provider, api, item, { vendorTool: true })
    events.push({ type: 'content_block_stop', index: this.#block, delta: { metadata } })
  }
}

/** Hosted tools, compaction, programs and unknown items: kept unchanged as native blocks. */
class OpenNative implements OpenItem {
  readonly id: string | undefined
  readonly #provider: string
  readonly #block: number

  constructor(item: JsonObject, shared: MessageParts, events: StreamEvent[]) {
    this.id = textOf(item['id'])
    this.#provider = shared.provider
    const name = textOf(item['type']) ?? 'unknown'
    this.#block = startBlock(shared, { block: 'native', name, ...itemId(this.id) }, events)
  }

  delta(): void {}

  close(item: JsonObject, events: StreamEvent[]): void {
    const metadata = withNative(this.#provider, api, item)
    events.push({ type: 'content_block_stop', index: this.#block, delta: { metadata } })
  }
}
