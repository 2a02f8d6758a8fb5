import type { JsonObject, JsonValue, SseEvent } from '@skein/base'
import { RepeatedFrame } from '#server'
import type { UPPError } from '../../contract/error.ts'
import { type BlockKind, StopReason, type StreamEvent } from '../../contract/event.ts'
import type { Source } from '../../contract/turn.ts'
import { listOf, objectOf, textOf, without } from '../read-json.ts'
import { toSources } from '../sources.ts'
import { orderMetadata } from '../block-order.ts'
import { invalidResponse, parseFrame, vendorFailure } from '../wire-error.ts'
import type { DecodeContext, ValueUnwrapper, WireDecoder } from '../wire.ts'
import { readError } from './error.ts'
import { type AnthropicDialect, type AnthropicEvent, API } from './types.ts'
import { mergeUsage, toUsage } from './usage.ts'
import type { ProviderMetadata } from '../../contract/content.ts'
import { withNative } from '../metadata.ts'

/** Fields of a message and its deltas that are not stored in the metadata of the message. */
const apart = new Set(['type', 'role', 'content', 'usage', 'stop_reason', 'delta'])

/** A block that has started and not yet stopped. */
interface OpenBlock extends VendorBlock {
  readonly index: number
  readonly toolCallId: string
  readonly toolName: string
  native: JsonObject
  /** Arguments in the start event; later deltas replace them. */
  readonly input: JsonValue | undefined
  readonly inputPieces: string[]
  readonly unwrapper: ValueUnwrapper | undefined
  hasDelta: boolean
}

/** Converts the events of a stream into ours. Complete answers are decoded by this class as well. */
export class AnthropicDecoder implements WireDecoder {
  readonly #context: DecodeContext<AnthropicDialect>
  readonly #provider: string
  /** Open blocks by the vendor's index. */
  readonly #blocks = new Map<unknown, OpenBlock>()
  /** The kind of each block, by our index; undefined for an empty block, which is not part of the message. */
  readonly #kinds: (BlockKind | undefined)[] = []
  #state: 'before' | 'open' | 'done' = 'before'
  #message: JsonObject = {}
  #usage: JsonObject = {}
  #stopReason: string | undefined
  readonly #sources: Source[] = []
  readonly #repeated = new RepeatedFrame('text')
  /** The block index in the frame that `#repeated` remembers. Frames like it are decoded without JSON.parse. */
  #repeatedIndex: JsonValue = null

  constructor(context: DecodeContext<AnthropicDialect>) {
    this.#context = context
    this.#provider = context.target.provider
  }

  push({ data }: SseEvent): StreamEvent[] {
    const again = this.#repeated.textOf(data)
    if (again !== undefined) {
      const delta = { type: 'text_delta', text: again }
      return this.decode({ type: 'content_block_delta', index: this.#repeatedIndex, delta })
    }
    const event: AnthropicEvent = parseFrame(data, this.#provider)
    const events = this.decode(event)
    if (this.#repeated.isLearning) {
      // `decode` reads only the block index and the text of a text delta, so similar frames need no parsing.
      const { type, text } = objectOf(event.delta) ?? {}
      const isText = event.type === 'content_block_delta' && type === 'text_delta'
      if (isText && typeof text === 'string' && this.#repeated.remember(data, text))
        this.#repeatedIndex = event.index ?? null
    }
    return events
  }

  decode(event: AnthropicEvent): StreamEvent[] {
    if (this.#state === 'done') return []
    switch (event.type) {
      case 'content_block_delta':
        return this.#delta(event)
      case 'content_block_start':
        return this.#startBlock(event)
      case 'content_block_stop':
        return this.#stopBlock(event.index)
      case 'message_start':
        return this.#startMessage(event)
      case 'message_delta':
        return this.#messageDelta(event)
      case 'message_stop':
        return this.#stopMessage()
      case 'error':
        throw vendorFailure(this.#provider, readError(event) ?? { message: 'The stream failed.' })
      default:
        return [] // `ping`, and event types added later
    }
  }

  end(): StreamEvent[] {
    if (this.#state === 'done') return []
    throw invalidResponse(this.#provider, 'its stream ended without message_stop')
  }

  #startMessage({ message }: AnthropicEvent): StreamEvent[] {
    const fields = objectOf(message)
    if (!fields || this.#state !== 'before') {
      throw invalidResponse(this.#provider, 'message_start is out of place or empty')
    }
    this.#state = 'open'
    this.#message = without(fields, apart)
    this.#usage = mergeUsage({}, fields['usage'])
    const model = textOf(fields['model'])
    const id = textOf(fields['id'])
    const delta = { provider: this.#provider, model, id }
    return [{ type: 'message_start', index: 0, delta }]
  }

  #startBlock({ index, content_block }: AnthropicEvent): StreamEvent[] {
    const native = objectOf(content_block)
    const type = native?.['type']
    if (this.#state !== 'open' || !native || typeof type !== 'string' || this.#blocks.has(index)) {
      throw invalidResponse(this.#provider, 'content_block_start is out of place or incomplete')
    }
    const block = this.#openBlock(native, type)
    this.#blocks.set(index, block)
    const { kind, toolCallId, toolName } = block
    const delta =
      kind === 'tool_call'
        ? { block: kind, toolCallId, toolName }
        : kind === 'native'
          ? { block: kind, name: type }
          : { block: kind }
    const start: StreamEvent = { type: 'content_block_start', index: block.index, delta }
    // A complete answer has its text here; in a stream the text is still empty.
    if (kind === 'text') return [start, ...this.#text(block, native['text'])]
    if (kind === 'reasoning') return [start, ...this.#reasoning(block, native['thinking'])]
    return [start]
  }

  #openBlock(native: JsonObject, type: string): OpenBlock {
    const kind = blockKinds.get(type) ?? 'native'
    this.#kinds.push(kind)
    return {
      index: this.#kinds.length - 1,
      kind,
      toolCallId: kind === 'tool_call' ? (textOf(native['id']) ?? this.#context.request.ids()) : '',
      toolName: kind === 'tool_call' ? (toolsetOf(native) ?? textOf(native['name']) ?? '') : '',
      // Leaves out the fields that the UPP block or call contains itself.
      native: kind === 'native' ? native : without(native, heldFields),
      input: kind === 'tool_call' ? native['input'] : undefined,
      inputPieces: [],
      unwrapper: kind === 'text' ? this.#context.unwrap?.() : undefined,
      hasDelta: false,
    }
  }

  #delta({ index, delta }: AnthropicEvent): StreamEvent[] {
    const block = this.#blocks.get(index)
    if (!block || typeof delta !== 'object' || delta === null) {
      throw invalidResponse(this.#provider, `content_block_delta of no open block (${index})`)
    }
    const fields = delta as JsonObject
    switch (fields['type']) {
      case 'text_delta':
        return this.#text(block, fields['text'])
      case 'thinking_delta':
        return this.#reasoning(block, fields['thinking'])
      case 'input_json_delta':
        return this.#input(block, fields['partial_json'])
      case 'citations_delta': {
        const before = block.native['citations']
        const citations = Array.isArray(before) ? (before as JsonValue[]) : []
        citations.push(fields['citation'] ?? null)
        block.native = { ...block.native, citations }
        return []
      }
      case 'signature_delta':
        block.native = { ...block.native, signature: fields['signature'] ?? '' }
        return []
      default:
        block.native = mergeUnknown(block.native, fields)
        return []
    }
  }

  #text(block: OpenBlock, value: unknown): StreamEvent[] {
    if (typeof value !== 'string' || value === '') return []
    if (block.kind !== 'text') throw this.#misplaced('text')
    const text = block.unwrapper ? block.unwrapper.push(value) : value
    if (text === '') return []
    block.hasDelta = true
    return [{ type: 'text_delta', index: block.index, delta: { text } }]
  }

  #reasoning(block: OpenBlock, text: unknown): StreamEvent[] {
    if (typeof text !== 'string' || text === '') return []
    if (block.kind !== 'reasoning') throw this.#misplaced('thinking')
    return [{ type: 'reasoning_delta', index: block.index, delta: { text } }]
  }

  #input(block: OpenBlock, json: unknown): StreamEvent[] {
    if (typeof json !== 'string') return []
    if (block.kind === 'tool_call' && toolsetOf(block.native) === undefined) {
      block.hasDelta = true
      return [callDelta(block, json)]
    }
    block.inputPieces.push(json)
    return []
  }

  #misplaced(what: string): UPPError {
    return invalidResponse(this.#provider, `${what} in a block of another kind`)
  }

  #stopBlock(vendorIndex: unknown): StreamEvent[] {
    const block = this.#blocks.get(vendorIndex)
    if (!block)
      throw invalidResponse(this.#provider, `content_block_stop of no open block (${vendorIndex})`)
    this.#blocks.delete(vendorIndex)
    const { index } = block
    const events: StreamEvent[] = []
    if (block.kind === 'tool_call' && !block.hasDelta) {
      events.push(callDelta(block, wholeInput(block)))
    }
    const rest = block.unwrapper?.end()
    if (rest) events.push({ type: 'text_delta', index, delta: { text: rest } })
    this.#sources.push(...listOf(block.native['citations']).flatMap(citedSource))
    const metadata = blockMetadata(block, this.#provider)
    if (block.kind === 'text' && !block.hasDelta && !rest && !metadata) {
      this.#kinds[index] = undefined
    }
    events.push({ type: 'content_block_stop', index, delta: metadata ? { metadata } : {} })
    return events
  }

  #messageDelta(event: AnthropicEvent): StreamEvent[] {
    const delta = objectOf(event.delta) ?? {}
    const stopReason = delta['stop_reason']
    if (typeof stopReason === 'string') this.#stopReason = stopReason
    const others = without(event as JsonObject, apart)
    this.#message = { ...this.#message, ...without(delta, apart), ...others }
    this.#usage = mergeUsage(this.#usage, event.usage)
    return []
  }

  #stopMessage(): StreamEvent[] {
    if (this.#state !== 'open') throw invalidResponse(this.#provider, 'message_stop came first')
    const events: StreamEvent[] = []
    for (const index of this.#blocks.keys()) events.push(...this.#stopBlock(index))
    this.#state = 'done'
    const { warnings } = this.#context
    events.push({
      type: 'message_stop',
      index: 0,
      delta: {
        stopReason: toStopReason(this.#stopReason),
        rawStopReason: this.#stopReason,
        usage: toUsage(this.#usage),
        metadata: {
          [this.#provider]: {
            api: API,
            ...this.#message,
            ...orderMetadata(this.#kinds.filter((kind) => kind !== undefined)),
          },
        },
        warnings: warnings.length > 0 ? warnings : undefined,
        sources: this.#sources.length > 0 ? this.#sources : undefined,
      },
    })
    return events
  }
}

/** Returns the page, search result, file or document (by its position in the request) of a citation. */
function citedSource(citation: JsonValue): Source[] {
  const { url, source, file_id, document_index, title, document_title } = objectOf(citation) ?? {}
  return toSources(citation, url ?? source ?? file_id ?? document_index, title ?? document_title)
}

function callDelta({ index, toolCallId, toolName }: OpenBlock, argumentsJson: string): StreamEvent {
  return { type: 'tool_call_delta', index, delta: { toolCallId, toolName, argumentsJson } }
}

/** A vendor block with everything received so far. */
interface VendorBlock {
  readonly kind: BlockKind
  /** The vendor's fields, without those that the UPP block or call contains itself. */
  readonly native: JsonObject
  /** Pieces of the JSON text of a server tool's input. */
  readonly inputPieces: readonly string[]
}

/** The kind of each block type; all other types are native. */
const blockKinds: ReadonlyMap<string, BlockKind> = new Map([
  ['text', 'text'],
  ['thinking', 'reasoning'],
  ['redacted_thinking', 'reasoning'],
  ['tool_use', 'tool_call'],
])

const heldFields = new Set(['text', 'thinking', 'input'])

/** Returns the name of the toolset that a call belongs to, e.g. `computer`. */
function toolsetOf(native: JsonObject): string | undefined {
  return textOf(native['toolset_name'])
}

/** Returns the input of a call as JSON text. A call of a toolset gets the name of its member as `action`. */
function wholeInput({ native, input, inputPieces }: OpenBlock): string {
  const text = inputPieces.join('')
  if (toolsetOf(native) === undefined) return JSON.stringify(input ?? {})
  const action = native['name'] ?? ''
  if (text === '') return JSON.stringify({ action, ...objectOf(input) })
  try {
    return JSON.stringify({ action, ...(JSON.parse(text) as JsonObject) })
  } catch {
    return text // cut off, so the call must not run
  }
}

const typeOnly = new Set(['type'])

/** Merges a delta of an unknown type: texts and lists are appended, all other values replaced. */
function mergeUnknown(native: JsonObject, delta: JsonObject): JsonObject {
  const mergedEntries = Object.entries(without(delta, typeOnly)).map(
    ([key, value]): [string, JsonValue | undefined] => {
      const before = native[key]
      if (typeof before === 'string' && typeof value === 'string') return [key, before + value]
      if (Array.isArray(before) && Array.isArray(value)) return [key, [...before, ...value]]
      return [key, value]
    },
  )
  return { ...native, ...Object.fromEntries(mergedEntries) }
}

/** The fields that a UPP block of each kind has itself; they are not stored again as metadata. */
const held: Partial<Record<BlockKind, ReadonlySet<string>>> = {
  text: new Set(['type']),
  tool_call: new Set(['type', 'id', 'name']),
}

/** Returns the vendor's fields that UPP does not have, as metadata of the finished block or call. */
function blockMetadata(
  { kind, native, inputPieces }: VendorBlock,
  provider: string,
): ProviderMetadata | undefined {
  const knownNames = held[kind]
  if (knownNames) {
    const says = ([key, value]: [string, unknown]): boolean =>
      !knownNames.has(key) && !(Array.isArray(value) && value.length === 0)
    const extra = toolsetOf(native) === undefined ? undefined : { vendorTool: true }
    return Object.entries(native).some(says) ? withNative(provider, API, native, extra) : undefined
  }
  if (inputPieces.length === 0) return withNative(provider, API, native)
  return withNative(provider, API, { ...native, input: parseInput(inputPieces, native['input']) })
}

/**
 * Parses the input of a server tool. If the input was cut off, the input of the start event is used, because
 * incomplete JSON cannot be sent back.
 */
function parseInput(pieces: readonly string[], fallback: JsonValue | undefined): JsonValue {
  const text = pieces.join('')
  try {
    return text === '' ? (fallback ?? {}) : (JSON.parse(text) as JsonValue)
  } catch {
    return fallback ?? {}
  }
}

const stopReasons: Readonly<Record<string, StopReason>> = {
  end_turn: StopReason.EndTurn,
  max_tokens: StopReason.MaxTokens,
  stop_sequence: StopReason.StopSequence,
  tool_use: StopReason.ToolUse,
  pause_turn: StopReason.Pause,
  // The conversation was summarised, and the answer follows when it is sent again.
  compaction: StopReason.Pause,
  refusal: StopReason.Refusal,
  model_context_window_exceeded: StopReason.ContextWindow,
}

function toStopReason(raw: string | undefined): StopReason {
  const reason = raw !== undefined && Object.hasOwn(stopReasons, raw) ? stopReasons[raw] : undefined
  return reason ?? StopReason.Other
}

/** The API's name for each of our stop reasons, for servers that speak this format. */
const words: Readonly<Record<StopReason, string>> = {
  end_turn: 'end_turn',
  max_tokens: 'max_tokens',
  stop_sequence: 'stop_sequence',
  tool_use: 'tool_use',
  pause: 'pause_turn',
  refusal: 'refusal',
  content_filter: 'refusal',
  context_window: 'model_context_window_exceeded',
  other: 'end_turn',
}

/** Returns the API's name for a stop reason, for servers that speak this format. */
export function fromStopReason(reason: StopReason): string {
  return words[reason]
}
