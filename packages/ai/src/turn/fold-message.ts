import type { Clock, IdSource, InputLimits } from '@skein/base'
import type { AssistantContent, ProviderMetadata } from '../contract/content.ts'
import type {
  BlockKind,
  ContentBlockStartEvent,
  MediaDeltaEvent,
  MessageStopEvent,
  StreamEvent,
} from '../contract/event.ts'
import { type ErrorOrigin, overLimit } from '../contract/error.ts'
import { joinBytes } from '../media/bytes.ts'
import { AssistantMessage } from '../contract/message.ts'
import type { ToolCall } from '../contract/tool.ts'
import { parseArguments } from '../contract/parse-arguments.ts'

/**
 * A block that is still being built. All kinds share one object shape for speed, because deltas are frequent.
 */
interface OpenBlock {
  readonly kind: BlockKind
  readonly start: ContentBlockStartEvent['delta']
  readonly text: string[]
  media: MediaDeltaEvent['delta'][]
  metadata: ProviderMetadata | undefined
}

/** The limits of one message, and the provider and modality that an error about them names. */
export type FoldLimits = Pick<InputLimits, 'maxMessageBytes' | 'maxToolCalls'> & {
  readonly origin: ErrorOrigin
}

/** Builds one assistant message from its stream events. Every assistant message of a stream is built here. */
export class MessageFold {
  /** How the message ended; undefined until `message_stop` has arrived. */
  stop: MessageStopEvent['delta'] | undefined
  readonly #blocks: OpenBlock[] = []
  readonly #blockIndexes = new Map<string, number>()
  readonly #ids: IdSource | undefined
  /** The id of each tool call, by block index. */
  readonly #callIds = new Map<number, string>()
  readonly #takenIds = new Set<string>()
  /** The vendor's ids of calls that got a new id, by block index. */
  readonly #vendorIds = new Map<number, string>()
  readonly #limits: FoldLimits | undefined
  readonly #counts = { maxMessageBytes: 0, maxToolCalls: 0 }

  /**
   * With `ids`, every tool call gets an id of its own, whatever the model sends (see `#withOwnId`). Without
   * limits a message of any size is accepted, e.g. one that was checked before.
   */
  constructor(ids?: IdSource, limits?: FoldLimits) {
    this.#ids = ids
    this.#limits = limits
  }

  /** Adds events to the message, and returns the events with the ids that the calls have in the message. */
  push(events: readonly StreamEvent[]): readonly StreamEvent[] {
    let newEvents: StreamEvent[] | undefined
    for (let place = 0; place < events.length; place++) {
      const original = events[place]!
      const event = this.#ids ? this.#withOwnId(original, this.#ids) : original
      if (event !== original) (newEvents ??= [...events])[place] = event
      this.#fold(event)
    }
    return newEvents ?? events
  }

  /**
   * Results are matched to calls by id, so two calls of a message with one id, or a call without an id, could
   * not be distinguished. Such a call gets a new id, which later requests use in call and result alike. The
   * vendor's id is kept in the call's metadata as `skein.vendorCallId`.
   */
  #withOwnId(event: StreamEvent, ids: IdSource): StreamEvent {
    if (event.type !== 'tool_call_delta' && event.type !== 'content_block_start') return event
    if (event.type === 'content_block_start' && event.delta.block !== 'tool_call') return event
    const { index, delta } = event
    let id = this.#callIds.get(index)
    if (id === undefined) {
      const original = delta.toolCallId ?? ''
      const isTaken = original === '' || this.#takenIds.has(original)
      id = isTaken ? ids() : original
      this.#callIds.set(index, id)
      this.#takenIds.add(id)
      if (isTaken && original !== '') this.#vendorIds.set(index, original)
    }
    if (id === delta.toolCallId) return event
    // The cast is safe: the delta keeps its other members, and both kinds of delta have a call id.
    return { ...event, delta: { ...delta, toolCallId: id } } as StreamEvent
  }

  /** True once the message is complete and needs no further inference (no tool call, no pause). */
  get isFinal(): boolean {
    return (
      this.stop !== undefined &&
      this.stop.stopReason !== 'pause' &&
      !this.#blocks.some((block) => block?.kind === 'tool_call')
    )
  }

  /**
   * The block index of each tool call, by call id; it is also the index of the events about the call's
   * execution.
   */
  get callIndexes(): ReadonlyMap<string, number> {
    return this.#blockIndexes
  }

  /** Returns the message so far. Calls with incomplete arguments are marked invalid. */
  message({ ids, clock }: { ids: IdSource; clock: Clock }): AssistantMessage {
    const content: AssistantContent[] = []
    const toolCalls: ToolCall[] = []
    this.#blocks.forEach((block, index) => {
      if (block.kind === 'tool_call') {
        const isCut = this.#isCutOff() && index === this.#blocks.length - 1
        const call = withVendorId(toToolCall(block, isCut), this.#vendorIds.get(index))
        this.#blockIndexes.set(call.toolCallId, index)
        toolCalls.push(call)
      } else content.push(...toContent(block))
    })
    const metadata = this.stop?.metadata
    return new AssistantMessage(content, toolCalls.length > 0 ? toolCalls : undefined, {
      ids,
      clock,
      metadata,
    })
  }

  /** True if the message has not ended, or a limit ended it: its last block may then be incomplete. */
  #isCutOff(): boolean {
    const reason = this.stop?.stopReason
    return reason === undefined || reason === 'max_tokens' || reason === 'context_window'
  }

  #fold(event: StreamEvent): void {
    switch (event.type) {
      case 'text_delta':
      case 'reasoning_delta':
      case 'object_delta':
        this.#addText(this.#block(event.index, kindOf[event.type]), event.delta.text)
        return
      case 'tool_call_delta':
        this.#addText(this.#block(event.index, 'tool_call', event.delta), event.delta.argumentsJson)
        return
      case 'image_delta':
      case 'audio_delta':
      case 'video_delta':
        if (!event.delta.isPartial)
          this.#block(event.index, kindOf[event.type]).media.push(event.delta)
        return
      case 'content_block_start':
        this.#start(event.index, event.delta)
        return
      case 'content_block_stop': {
        const block = this.#blocks[event.index]
        if (block && event.delta.metadata) block.metadata = event.delta.metadata
        return
      }
      case 'message_stop':
        this.stop = event.delta
        return
      case 'message_start':
      case 'tool_execution_start':
      case 'tool_execution_end':
        return
      default:
        event satisfies never
    }
  }

  /** Returns the block of an index, and creates it if the provider sent no `content_block_start`. */
  #block(
    index: number,
    kind: BlockKind,
    call?: { toolCallId: string; toolName: string },
  ): OpenBlock {
    const block = this.#blocks[index]
    if (block) return block
    return this.#start(index, {
      block: kind,
      ...(call && { toolCallId: call.toolCallId, toolName: call.toolName }),
    })
  }

  #start(index: number, start: ContentBlockStartEvent['delta']): OpenBlock {
    if (start.block === 'tool_call') this.#count('maxToolCalls', 1)
    return (this.#blocks[index] = newBlock(start))
  }

  #addText(block: OpenBlock, text: string): void {
    this.#count('maxMessageBytes', utf8Length(text))
    block.text.push(text)
  }

  #count(name: 'maxMessageBytes' | 'maxToolCalls', added: number): void {
    const limits = this.#limits
    if (limits && (this.#counts[name] += added) > limits[name])
      throw overLimit('A message', name, limits[name], limits.origin)
  }
}

const encoder = new TextEncoder()
const SHORT = 512

/** Returns how many bytes a text has in UTF-8. Short ASCII texts need not be encoded. */
function utf8Length(text: string): number {
  const isAscii = text.length <= SHORT && !/[^\n -~]/.test(text)
  return isAscii ? text.length : encoder.encode(text).length
}

const kindOf = {
  text_delta: 'text',
  reasoning_delta: 'reasoning',
  object_delta: 'object',
  image_delta: 'image',
  audio_delta: 'audio',
  video_delta: 'video',
} as const satisfies Partial<Record<StreamEvent['type'], BlockKind>>

function newBlock(start: ContentBlockStartEvent['delta']): OpenBlock {
  return { kind: start.block, start, text: [], media: [], metadata: undefined }
}

function toToolCall({ start, text, metadata }: OpenBlock, isCut: boolean): ToolCall {
  const json = text.join('')
  const parsed =
    isCut && json.trim() === ''
      ? { invalid: { text: json, reason: 'the answer was cut off before the arguments' } }
      : parseArguments(json)
  return {
    toolCallId: start.toolCallId ?? '',
    toolName: start.toolName ?? '',
    arguments: parsed.arguments ?? {},
    // Messages are compared and stored, so empty optional members are left out.
    ...(parsed.invalid && { invalidArguments: parsed.invalid }),
    ...(metadata && { metadata }),
  }
}

/** Adds the vendor's id to a call's metadata, if the call got another id. */
function withVendorId(call: ToolCall, vendorCallId: string | undefined): ToolCall {
  if (vendorCallId === undefined) return call
  return { ...call, metadata: { ...call.metadata, skein: { vendorCallId } } }
}

/**
 * Converts a finished block. Empty blocks are dropped, because
 * vendors reject empty text when it is sent back.
 */
function toContent(block: OpenBlock): readonly AssistantContent[] {
  const metadata = block.metadata && { metadata: block.metadata }
  switch (block.kind) {
    case 'text':
    case 'object':
    case 'reasoning': {
      const text = block.text.join('')
      if (text === '' && !metadata) return []
      return [{ type: block.kind === 'reasoning' ? 'reasoning' : 'text', text, ...metadata }]
    }
    case 'image':
    case 'audio':
    case 'video':
      return toMedia(block, block.kind).map((media) => ({ ...media, ...metadata }))
    case 'native':
      return [{ type: 'native', name: block.start.name ?? '', metadata: block.metadata ?? {} }]
    case 'tool_call':
      return []
  }
}

function toMedia(
  { media }: OpenBlock,
  kind: 'image' | 'audio' | 'video',
): readonly AssistantContent[] {
  const last = media.at(-1)
  if (!last) return []
  const { mimeType, url } = last
  if (kind === 'image' && url !== undefined)
    return [{ type: 'image', source: { type: 'url', url }, mimeType }]
  const data = joinBytes(media.map((piece) => piece.data))
  if (kind === 'image') return [{ type: 'image', source: { type: 'bytes', data }, mimeType }]
  return [{ type: kind, data, mimeType }]
}
