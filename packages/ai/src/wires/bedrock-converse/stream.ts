import type { JsonObject, JsonValue, SseEvent } from '@skein/base'
import { type BlockKind, StopReason, type StreamEvent } from '../../contract/event.ts'
import type { Source } from '../../contract/turn.ts'
import { decodeLooseBase64 } from '../../media/bytes.ts'
import { orderMetadata } from '../block-order.ts'
import { withNative } from '../metadata.ts'
import { isEmpty, listOf, numberOf, objectOf, stringOf, textOf, without } from '../read-json.ts'
import { toSources } from '../sources.ts'
import { asDecodeError, invalidResponse, parseFrame, vendorFailure } from '../wire-error.ts'
import type { DecodeContext, ValueUnwrapper, WireDecoder } from '../wire.ts'
import { readError } from './error.ts'
import { EXCEPTION } from './frames.ts'
import { API, type BedrockDialect, type BedrockResponse } from './types.ts'
import { toUsage } from './usage.ts'

/** A block that has started and not yet stopped. */
interface OpenBlock {
  readonly index: number
  readonly kind: BlockKind
  readonly toolCallId: string
  readonly toolName: string
  readonly mimeType: string
  readonly unwrapper: ValueUnwrapper | undefined
  native: JsonObject
  hasDelta: boolean
}

/** Converts the events of a stream, or a complete answer, into events. */
export class BedrockDecoder implements WireDecoder {
  readonly #context: DecodeContext<BedrockDialect>
  readonly #provider: string
  readonly #blocks = new Map<number, OpenBlock>()
  readonly #kinds: BlockKind[] = []
  readonly #sources: Source[] = []
  #isStarted = false
  #fields: JsonObject = {}
  #usage: JsonObject = {}
  #stopReason: string | undefined

  constructor(context: DecodeContext<BedrockDialect>) {
    this.#context = context
    this.#provider = context.target.provider
  }

  push({ event: type, data }: SseEvent): StreamEvent[] {
    const body = parseFrame(data, this.#provider)
    if (type.startsWith(EXCEPTION)) {
      const message = 'The stream failed.'
      throw vendorFailure(this.#provider, readError(body, type.slice(EXCEPTION.length)) ?? { message }) // prettier-ignore
    }
    const events: StreamEvent[] = []
    const index = numberOf(body['contentBlockIndex']) ?? 0
    switch (type) {
      case 'messageStart':
        this.#begin(events)
        break
      case 'contentBlockStart':
        this.#start(index, objectOf(body['start']) ?? {}, events)
        break
      case 'contentBlockDelta':
        this.#delta(index, objectOf(body['delta']) ?? {}, events)
        break
      case 'contentBlockStop':
        this.#stop(index, events)
        break
      case 'messageStop':
        this.#stopReason = textOf(body['stopReason']) ?? this.#stopReason
        this.#fields = { ...this.#fields, ...without(body, frameKeys) }
        break
      case 'metadata':
        this.#usage = { ...this.#usage, ...objectOf(body['usage']) }
        this.#fields = { ...this.#fields, ...without(body, frameKeys) }
        break
      default: // event types added later
    }
    return events
  }

  /** Decodes a complete answer. */
  decodeWhole(answer: BedrockResponse): StreamEvent[] {
    const events: StreamEvent[] = []
    const message = objectOf(objectOf(answer.output)?.['message'])
    this.#begin(events)
    listOf(message?.['content']).forEach((item, index) => {
      this.#whole(index, objectOf(item) ?? {}, events)
    })
    this.#usage = objectOf(answer.usage) ?? {}
    this.#stopReason = textOf(answer.stopReason)
    this.#fields = without(answer as JsonObject, frameKeys)
    return events
  }

  end(): StreamEvent[] {
    if (this.#stopReason === undefined)
      throw invalidResponse(this.#provider, 'it ended without a stopReason')
    const events: StreamEvent[] = []
    this.#begin(events)
    for (const index of this.#blocks.keys()) this.#stop(index, events)
    const { warnings } = this.#context
    events.push({
      type: 'message_stop',
      index: 0,
      delta: {
        stopReason: toStopReason(this.#stopReason),
        rawStopReason: this.#stopReason,
        usage: toUsage(this.#usage),
        metadata: {
          [this.#provider]: { api: API, ...this.#fields, ...orderMetadata(this.#kinds) },
        },
        warnings: warnings.length > 0 ? warnings : undefined,
        sources: this.#sources.length > 0 ? this.#sources : undefined,
      },
    })
    return events
  }

  #begin(events: StreamEvent[]): void {
    if (this.#isStarted) return
    this.#isStarted = true
    // The API names neither the model nor an id.
    const { modelId: model } = this.#context.target
    events.push({ type: 'message_start', index: 0, delta: { provider: this.#provider, model } })
  }

  /** Decodes one block of a complete answer as its start, its deltas and its stop. */
  #whole(index: number, block: JsonObject, events: StreamEvent[]): void {
    const [kind] = Object.keys(block).filter((key) => !paddingKeys.has(key))
    const inner = kind === undefined ? undefined : objectOf(block[kind])
    switch (kind) {
      case undefined:
        return
      case 'text':
        this.#delta(index, block, events)
        break
      case 'citationsContent': {
        const text = listOf(inner?.['content']).map((part) => stringOf(objectOf(part)?.['text']) ?? '').join('') // prettier-ignore
        this.#delta(index, { text }, events)
        for (const citation of listOf(inner?.['citations'])) this.#delta(index, { citation }, events) // prettier-ignore
        break
      }
      case 'reasoningContent': {
        const { reasoningText, ...rest } = inner ?? {}
        for (const [name, value] of Object.entries({ ...objectOf(reasoningText), ...rest }))
          this.#delta(index, { reasoningContent: { [name]: value } }, events)
        break
      }
      case 'toolUse': {
        if (inner?.['type'] !== undefined) return this.#native(block, kind, events)
        this.#start(index, { toolUse: without(inner ?? {}, inputKey) }, events)
        this.#delta(index, { toolUse: { input: JSON.stringify(inner?.['input'] ?? {}) } }, events)
        break
      }
      case 'image':
        this.#start(index, { image: without(inner ?? {}, sourceKey) }, events)
        this.#delta(index, { image: { source: inner?.['source'] } }, events)
        break
      default:
        return this.#native(block, kind, events)
    }
    this.#stop(index, events)
  }

  /** Emits a block that goes back to the vendor as it came. */
  #native(native: JsonObject, name: string, events: StreamEvent[]): void {
    const block = this.#open({ block: 'native', name }, events)
    block.native = native
    this.#close(block, events)
  }

  #start(index: number, start: JsonObject, events: StreamEvent[]): void {
    this.#begin(events)
    if (this.#blocks.has(index)) this.#stop(index, events)
    const use = objectOf(start['toolUse'])
    if (use && use['type'] === undefined) {
      const toolCallId = textOf(use['toolUseId']) ?? this.#context.request.ids()
      const toolName = textOf(use['name']) ?? ''
      const block = this.#open({ block: 'tool_call', toolCallId, toolName }, events)
      block.native = without(use, callKeys)
      this.#blocks.set(index, block)
      return
    }
    const image = objectOf(start['image'])
    if (image) {
      const mimeType = `image/${textOf(image['format']) ?? 'png'}`
      const block = { ...this.#open({ block: 'image' }, events), mimeType }
      return void this.#blocks.set(index, block)
    }
    const [name] = Object.keys(start)
    if (name === undefined) return
    const block = this.#open({ block: 'native', name }, events)
    block.native = start
    this.#blocks.set(index, block)
  }

  #delta(index: number, delta: JsonObject, events: StreamEvent[]): void {
    this.#begin(events)
    const { text, toolUse, reasoningContent, citation, image } = delta
    if (typeof text === 'string') return this.#text(index, text, events)
    if (citation !== undefined) return this.#citation(index, citation, events)
    if (reasoningContent !== undefined)
      return this.#reasoning(index, objectOf(reasoningContent) ?? {}, events)
    const block = this.#blocks.get(index)
    if (image !== undefined && block?.kind === 'image')
      return this.#image(block, objectOf(image) ?? {}, events)
    const input = stringOf(objectOf(toolUse)?.['input'])
    if (block?.kind === 'tool_call') {
      if (input === undefined) return
      block.hasDelta = true
      const { toolCallId, toolName } = block
      const said = { toolCallId, toolName, argumentsJson: input }
      return void events.push({ type: 'tool_call_delta', index: block.index, delta: said })
    }
    const open = block?.kind === 'native' ? block : this.#nativeAt(index, delta, events)
    if (open) open.native = mergeDelta(open.native, delta)
  }

  #nativeAt(index: number, delta: JsonObject, events: StreamEvent[]): OpenBlock | undefined {
    const [name] = Object.keys(delta)
    if (name === undefined) return undefined
    if (this.#blocks.has(index)) this.#stop(index, events)
    const block = this.#open({ block: 'native', name }, events)
    this.#blocks.set(index, block)
    return block
  }

  #text(index: number, text: string, events: StreamEvent[]): void {
    const known = this.#blocks.get(index)
    if (text === '' && !known) return
    const block = this.#continue(index, 'text', events)
    const shown = block.unwrapper ? block.unwrapper.push(text) : text
    if (shown !== '') events.push({ type: 'text_delta', index: block.index, delta: { text: shown } }) // prettier-ignore
  }

  #citation(index: number, citation: JsonValue, events: StreamEvent[]): void {
    const block = this.#continue(index, 'text', events)
    block.native = { ...block.native, citations: [...listOf(block.native['citations']), citation] }
    const { title, source, location } = objectOf(citation) ?? {}
    const place = Object.values(objectOf(location) ?? {})
      .map(objectOf)
      .find((one) => one)
    const { url, documentIndex } = place ?? {}
    this.#sources.push(...toSources(citation, url ?? source ?? documentIndex, title))
  }

  #reasoning(index: number, delta: JsonObject, events: StreamEvent[]): void {
    const block = this.#continue(index, 'reasoning', events)
    const { text, ...rest } = delta
    if (typeof text === 'string' && text !== '')
      events.push({ type: 'reasoning_delta', index: block.index, delta: { text } })
    block.native = mergeDelta(block.native, without(rest, none))
  }

  #image({ index, mimeType }: OpenBlock, image: JsonObject, events: StreamEvent[]): void {
    const bytes = stringOf(objectOf(image['source'])?.['bytes'])
    if (bytes === undefined) return
    let data: Uint8Array
    try {
      data = decodeLooseBase64(bytes)
    } catch (error) {
      throw asDecodeError(this.#provider, error)
    }
    events.push({ type: 'image_delta', index, delta: { data, mimeType } })
  }

  /** Returns the open block with this index, or starts one: text and reasoning have no start of their own. */
  #continue(index: number, kind: 'text' | 'reasoning', events: StreamEvent[]): OpenBlock {
    const known = this.#blocks.get(index)
    if (known?.kind === kind) return known
    if (known) this.#stop(index, events)
    const block = this.#open({ block: kind }, events)
    this.#blocks.set(index, block)
    return block
  }

  #open(
    delta: Extract<StreamEvent, { type: 'content_block_start' }>['delta'],
    events: StreamEvent[],
  ): OpenBlock {
    const index = this.#kinds.push(delta.block) - 1
    events.push({ type: 'content_block_start', index, delta })
    const { toolCallId = '', toolName = '' } = delta.block === 'tool_call' ? delta : {}
    const unwrapper = delta.block === 'text' ? this.#context.unwrap?.() : undefined
    return { index, kind: delta.block, toolCallId, toolName, mimeType: '', unwrapper, native: {}, hasDelta: false } // prettier-ignore
  }

  #stop(index: number, events: StreamEvent[]): void {
    const block = this.#blocks.get(index)
    this.#blocks.delete(index)
    if (block) this.#close(block, events)
  }

  #close(block: OpenBlock, events: StreamEvent[]): void {
    const { index, native, kind, hasDelta, toolCallId, toolName, unwrapper } = block
    if (kind === 'tool_call' && !hasDelta) {
      const delta = { toolCallId, toolName, argumentsJson: '{}' }
      events.push({ type: 'tool_call_delta', index, delta })
    }
    const rest = unwrapper?.end()
    if (rest) events.push({ type: 'text_delta', index, delta: { text: rest } })
    const metadata = withNative(this.#provider, API, native)
    events.push({ type: 'content_block_stop', index, delta: isEmpty(native) ? {} : { metadata } })
  }
}

/**
 * Fields that are not stored in the metadata of the message. `p` fills events up, so that their length says nothing
 * of their content.
 */
const frameKeys: ReadonlySet<string> = new Set(['output', 'usage', 'stopReason', 'p', 'role'])
const paddingKeys: ReadonlySet<string> = new Set(['p'])
const none: ReadonlySet<string> = new Set()
const inputKey: ReadonlySet<string> = new Set(['input'])
const sourceKey: ReadonlySet<string> = new Set(['source'])
const callKeys: ReadonlySet<string> = new Set(['toolUseId', 'name', 'input'])

/** Merges a piece into a block: texts and lists are appended, objects merged, other values replaced. */
function mergeDelta(native: JsonObject, delta: JsonObject): JsonObject {
  const entries = Object.entries(delta).map(([key, value]): [string, JsonValue | undefined] => {
    const known = Object.hasOwn(native, key) ? native[key] : undefined
    if (typeof known === 'string' && typeof value === 'string') return [key, known + value]
    if (Array.isArray(known) && Array.isArray(value)) return [key, [...known, ...value]]
    const [inner, more] = [objectOf(known), objectOf(value)]
    return [key, inner && more ? mergeDelta(inner, more) : value]
  })
  return { ...native, ...Object.fromEntries(entries) }
}

const reasons: Readonly<Record<string, StopReason>> = {
  end_turn: StopReason.EndTurn,
  tool_use: StopReason.ToolUse,
  max_tokens: StopReason.MaxTokens,
  stop_sequence: StopReason.StopSequence,
  guardrail_intervened: StopReason.ContentFilter,
  content_filtered: StopReason.ContentFilter,
  model_context_window_exceeded: StopReason.ContextWindow,
}

/** Converts the stop reason. Reasons not listed (`malformed_tool_use`, …) become `other`. */
function toStopReason(reason: string): StopReason {
  return (Object.hasOwn(reasons, reason) ? reasons[reason] : undefined) ?? StopReason.Other
}

/** Converts a stop reason to the API's, for servers that speak this format. */
export function stopReasonOf(reason: StopReason): string {
  switch (reason) {
    case 'content_filter':
    case 'refusal':
      return 'content_filtered'
    case 'context_window':
      return 'model_context_window_exceeded'
    case 'tool_use':
    case 'max_tokens':
    case 'stop_sequence':
      return reason
    default:
      return 'end_turn'
  }
}
