import type { IdSource, JsonObject } from '@skein/base'
import type { ProviderMetadata } from '../../contract/content.ts'
import type { StreamEvent } from '../../contract/event.ts'
import { withNative } from '../metadata.ts'
import { isEmpty, textOf, without } from '../read-json.ts'
import { verbatimArguments } from '../arguments-text.ts'
import type { ChatToolCall } from './types.ts'

/** A call that is being streamed. Its start event is sent once its name is known. */
interface OpenCall {
  id: string
  name: string
  readonly isCustom: boolean
  /** The index of the call's block; -1 before the start event. */
  block: number
  /** The arguments so far, of which the first `sent` characters were sent as deltas. */
  text: string
  sent: number
  extra: JsonObject
}

const knownFields = new Set(['index', 'id', 'type', 'function', 'custom'])

interface ToolCallsOptions {
  readonly provider: string
  readonly ids: IdSource
  /** Returns the next block index of the message. */
  readonly nextBlock: () => number
}

/** Assigns pieces of streamed tool calls to their calls. */
export class ToolCalls {
  readonly #calls: OpenCall[] = []
  readonly #byIndex = new Map<number, OpenCall>()
  readonly #options: ToolCallsOptions

  constructor(options: ToolCallsOptions) {
    this.#options = options
  }

  get count(): number {
    return this.#calls.length
  }

  push(piece: ChatToolCall, events: StreamEvent[]): void {
    const call = this.#find(piece) ?? this.#add(piece)
    const { function: fn, custom } = piece
    call.id ||= textOf(piece.id) ?? ''
    call.name ||= textOf(fn?.name) ?? textOf(custom?.name) ?? ''
    if (call.isCustom) {
      // Free text is written as the inside of a JSON string. A surrogate pair that is split between two
      // pieces is joined again when the JSON is parsed.
      if (typeof custom?.input === 'string') call.text += JSON.stringify(custom.input).slice(1, -1)
    } else {
      const args = fn?.arguments
      if (typeof args === 'string') call.text += args
      else if (typeof args === 'object' && args !== null) call.text += JSON.stringify(args)
    }
    const extra = without(piece as JsonObject, knownFields)
    if (!isEmpty(extra)) call.extra = { ...call.extra, ...extra }
    if (call.name !== '') this.#send(call, events)
  }

  /**
   * Ends all calls in their order of appearance. An input that was cut off stays invalid JSON, so that its
   * call never runs.
   */
  end(events: StreamEvent[], isCut: boolean): void {
    for (const call of this.#calls) {
      if (call.isCustom && !isCut) call.text += '"}'
      this.#send(call, events)
      if (call.sent === 0) this.#delta(call, '', events)
      const metadata = this.#metadata(call)
      events.push({
        type: 'content_block_stop',
        index: call.block,
        delta: metadata ? { metadata } : {},
      })
    }
  }

  /**
   * Finds the call of a piece: by index if it has one, otherwise by id, otherwise the latest call. A
   * piece that names a function under a new id begins another call, and so does a piece without an index
   * that has a new id or names a function, because several servers number all parallel calls 0 or not at
   * all.
   */
  #find(piece: ChatToolCall): OpenCall | undefined {
    const { index } = piece
    const id = textOf(piece.id)
    const isNamed = textOf(piece.function?.name ?? piece.custom?.name) !== undefined
    if (typeof index === 'number') {
      const call = this.#byIndex.get(index)
      const isOther = call && isNamed && id !== undefined && call.id !== '' && call.id !== id
      return isOther ? undefined : call
    }
    const openCall = id === undefined ? undefined : this.#calls.find((call) => call.id === id)
    if (openCall) return openCall
    return id === undefined && !isNamed ? this.#calls.at(-1) : undefined
  }

  #add(piece: ChatToolCall): OpenCall {
    const isCustom = piece.type === 'custom' || piece.custom !== undefined
    // The free text of a custom tool becomes `{ input }`, since UPP arguments are an object.
    const text = isCustom ? '{"input":"' : ''
    const call: OpenCall = { id: '', name: '', isCustom, block: -1, text, sent: 0, extra: {} }
    this.#calls.push(call)
    if (typeof piece.index === 'number') this.#byIndex.set(piece.index, call)
    return call
  }

  #send(call: OpenCall, events: StreamEvent[]): void {
    if (call.block < 0) this.#start(call, events)
    if (call.sent === call.text.length) return
    const piece = call.text.slice(call.sent)
    call.sent = call.text.length
    this.#delta(call, piece, events)
  }

  #start(call: OpenCall, events: StreamEvent[]): void {
    call.id ||= `call_${this.#options.ids()}`
    call.block = this.#options.nextBlock()
    events.push({
      type: 'content_block_start',
      index: call.block,
      delta: { block: 'tool_call', toolCallId: call.id, toolName: call.name },
    })
  }

  #delta(call: OpenCall, argumentsJson: string, events: StreamEvent[]): void {
    events.push({
      type: 'tool_call_delta',
      index: call.block,
      delta: { toolCallId: call.id, toolName: call.name, argumentsJson },
    })
  }

  /**
   * Returns the metadata of a call; undefined if UPP's own fields contain everything that the vendor
   * sent.
   */
  #metadata({ isCustom, text, extra }: OpenCall): ProviderMetadata | undefined {
    const { provider } = this.#options
    if (isCustom) return withNative(provider, 'openai-chat', { ...extra, type: 'custom' })
    const verbatim = verbatimArguments(text)
    if (verbatim === undefined && isEmpty(extra)) return undefined
    const native = verbatim === undefined ? extra : { ...extra, function: { arguments: verbatim } }
    return withNative(provider, 'openai-chat', native)
  }
}
