import type { JsonObject, JsonValue, SseEvent } from '@skein/base'
import { RepeatedFrame } from '#server'
import { decodeLooseBase64 } from '../../media/bytes.ts'
import type { StreamEvent } from '../../contract/event.ts'
import { audioMimeType } from '../media.ts'
import { withNative } from '../metadata.ts'
import { readErrorBody } from '../openai-error.ts'
import { listOf, objectOf, stringOf, textOf, without } from '../read-json.ts'
import { orderMetadata } from '../block-order.ts'
import { asDecodeError, invalidResponse, vendorFailure } from '../wire-error.ts'
import type { DecodeContext, WireDecoder } from '../wire.ts'
import type { OpenAIResponsesDialect, ResponsesEvent } from './types.ts'
import { endOfResponse } from './stop-reason.ts'
import { toUsage } from './usage.ts'
import { type ItemPart, type MessageParts, openItem, type OpenItem } from './stream-parts.ts'
import { ErrorCode } from '../../contract/error.ts'

/** The part of an item that the text of each event type belongs to. */
const textEvents: ReadonlyMap<string, ItemPart['type']> = new Map([
  ['response.output_text.delta', 'text'],
  ['response.refusal.delta', 'refusal'],
  ['response.reasoning_text.delta', 'text'],
  ['response.reasoning_summary_text.delta', 'summary'],
  ['response.function_call_arguments.delta', 'arguments'],
  ['response.custom_tool_call_input.delta', 'input'],
])

/** Fields of a text delta that say nothing about the answer. */
const ignoredFields = { texts: ['obfuscation'], numbers: ['sequence_number'] }

interface StreamedItem {
  readonly open: OpenItem
  /** The item as announced; used if its closing event never comes. */
  readonly item: JsonObject
  isClosed: boolean
}

/** An open audio block; audio events belong to no item. */
interface OpenAudio {
  readonly block: number
  transcript: string
}

/**
 * Converts the events of a response. A complete response is decoded by the same code: its items are
 * opened and closed together. Content of the terminal event that was not streamed before is added then,
 * so servers may leave out events.
 */
export class ResponsesDecoder implements WireDecoder {
  readonly #context: DecodeContext<OpenAIResponsesDialect>
  readonly #provider: string
  readonly #parts: MessageParts
  readonly #items: (StreamedItem | undefined)[] = []
  readonly #repeated = new RepeatedFrame('delta', ignoredFields)
  /** Adds a text where the remembered frame added its text; used for similar frames, which need no parsing. */
  #again: ((text: string, events: StreamEvent[]) => void) | undefined
  #audio: OpenAudio | undefined
  #isStarted = false
  #isDone = false

  constructor(context: DecodeContext<OpenAIResponsesDialect>) {
    const { target, unwrap } = context
    const { provider } = target
    this.#context = context
    this.#provider = provider
    const hasHostedShell = listOf(context.request.params['tools'] as JsonValue).some((tool) =>
      textOf(objectOf(objectOf(tool)?.['environment'])?.['type'])?.startsWith('container'),
    )
    this.#parts = { provider, unwrap, kinds: [], hasRefusal: false, sources: [], hasHostedShell }
  }

  push(frame: SseEvent): StreamEvent[] {
    if (this.#isDone || frame.data === '[DONE]') return []
    const events: StreamEvent[] = []
    const again = this.#repeated.textOf(frame.data)
    try {
      if (again !== undefined) {
        this.#again?.(again, events)
        return events
      }
      const event = JSON.parse(frame.data) as ResponsesEvent
      this.#read(event, frame.event, events)
      const part = textEvents.get(event.type ?? '')
      const { delta } = event
      // `#text` reads only the place and the text of a text delta, so similar frames need no parsing.
      if (part && typeof delta === 'string' && this.#repeated.isLearning)
        if (this.#repeated.remember(frame.data, delta))
          this.#again = (text, out) => this.#text(part, { ...event, delta: text }, out)
    } catch (error) {
      throw asDecodeError(this.#provider, error)
    }
    return events
  }

  end(): StreamEvent[] {
    if (this.#isDone) return []
    throw invalidResponse(this.#provider, 'its stream ended before the response did')
  }

  /** Decodes a complete response. */
  decode(response: JsonObject): StreamEvent[] {
    const events: StreamEvent[] = []
    this.#start(response, events)
    this.#finish(response, events)
    return events
  }

  #read(event: ResponsesEvent, named: string, events: StreamEvent[]): void {
    const { type = named } = event
    const part = textEvents.get(type)
    if (part !== undefined) return this.#text(part, event, events)
    switch (type) {
      case 'response.created':
      case 'response.queued':
      case 'response.in_progress':
        return this.#start(objectOf(event.response) ?? {}, events)
      case 'response.output_item.added':
        return void this.#open(event, objectOf(event.item) ?? {}, events)
      case 'response.output_item.done':
        return this.#close(event, objectOf(event.item) ?? {}, events)
      case 'response.content_part.added':
        return this.#openPart(event, events)
      case 'response.image_generation_call.partial_image': {
        const preview = { type: 'preview', index: 0, format: event.output_format } as const
        const image = event.partial_image_b64 ?? ''
        return this.#itemOf(event, events)?.open.delta(image, preview, events)
      }
      case 'response.audio.delta':
        return this.#audioDelta(event.delta ?? '', events)
      case 'response.audio.transcript.delta':
        this.#openAudio(events).transcript += event.delta ?? ''
        return
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
      case 'response.cancelled':
        return this.#end(type, event, events)
      case 'error':
        throw this.#failure(event)
      default:
        return // progress of hosted tools and repeated content: the closing item has the complete result
    }
  }

  #start({ id, model }: JsonObject, events: StreamEvent[]): void {
    if (this.#isStarted) return
    this.#isStarted = true
    const delta = { provider: this.#provider, model: stringOf(model), id: stringOf(id) }
    events.push({ type: 'message_start', index: 0, delta })
  }

  #text(type: ItemPart['type'], event: ResponsesEvent, events: StreamEvent[]): void {
    const { delta } = event
    if (typeof delta !== 'string' || delta === '') return
    const index = event.content_index ?? event.summary_index ?? 0
    this.#itemOf(event, events)?.open.delta(delta, { type, index }, events)
  }

  /** Opens a part of a message, so that refusals and empty texts are recognised before any text arrives. */
  #openPart(event: ResponsesEvent, events: StreamEvent[]): void {
    const type = objectOf(event.part)?.['type']
    const item = this.#itemOf(event, events)
    if (item?.item['type'] !== 'message') return
    const kind = type === 'refusal' ? 'refusal' : 'text'
    item.open.delta('', { type: kind, index: event.content_index ?? 0 }, events)
  }

  /**
   * Finds the item of an event by position, or by id if the server sends no position. Text for an item
   * that was not announced opens a message.
   */
  #itemOf(event: ResponsesEvent, events: StreamEvent[]): StreamedItem | undefined {
    const { output_index, item_id } = event
    const openItem =
      typeof output_index === 'number'
        ? this.#items[output_index]
        : this.#items.find((item) => item?.open.id === item_id)
    if (openItem) return openItem.isClosed ? undefined : openItem
    if (event.type !== 'response.output_text.delta') return undefined
    return this.#open(event, { type: 'message', role: 'assistant', id: item_id ?? '' }, events)
  }

  #open(event: ResponsesEvent, item: JsonObject, events: StreamEvent[]): StreamedItem {
    this.#start({}, events)
    const position = event.output_index ?? this.#items.length
    const open = openItem(item, this.#parts, events)
    return (this.#items[position] = { open, item, isClosed: false })
  }

  #close(event: ResponsesEvent, item: JsonObject, events: StreamEvent[]): void {
    const { output_index } = event
    const id = textOf(item['id'])
    const itemBefore =
      typeof output_index === 'number'
        ? this.#items[output_index]
        : this.#items.find((each) => each && !each.isClosed && each.open.id === id)
    const openOne = itemBefore ?? this.#open(event, item, events)
    if (openOne.isClosed) return
    openOne.isClosed = true
    openOne.open.close(item, events)
  }

  #audioDelta(base64: string, events: StreamEvent[]): void {
    const format = objectOf(this.#context.request.params['audio'])?.['format']
    const mimeType = audioMimeType(textOf(format) ?? 'pcm16')
    const index = this.#openAudio(events).block
    const delta = { data: decodeLooseBase64(base64), mimeType }
    events.push({ type: 'audio_delta', index, delta })
  }

  #openAudio(events: StreamEvent[]): OpenAudio {
    if (this.#audio) return this.#audio
    this.#start({}, events)
    const block = this.#parts.kinds.push('audio') - 1
    events.push({ type: 'content_block_start', index: block, delta: { block: 'audio' } })
    return (this.#audio = { block, transcript: '' })
  }

  #end(type: string, event: ResponsesEvent, events: StreamEvent[]): void {
    const response = objectOf(event.response) ?? {}
    const status = type.slice('response.'.length)
    this.#start(response, events)
    this.#finish({ status, ...response }, events)
  }

  #finish(response: JsonObject, events: StreamEvent[]): void {
    if (response['status'] === 'cancelled')
      throw vendorFailure(this.#provider, {
        message: `${this.#provider} cancelled the response ${textOf(response['id']) ?? ''}.`,
        code: ErrorCode.Cancelled,
      })
    const error = objectOf(response['error'])
    if (response['status'] === 'failed' || error) {
      const message = 'The response failed, and the vendor gave no reason.'
      const vendorError = readErrorBody({ error: error ?? { message } }) ?? { message }
      throw vendorFailure(this.#provider, vendorError)
    }
    this.#isDone = true
    this.#catchUp(listOf(response['output']), events)
    this.#closeAudio(events)
    const { kinds, hasRefusal, sources } = this.#parts
    const { warnings } = this.#context
    events.push({
      type: 'message_stop',
      index: 0,
      delta: {
        ...endOfResponse(response, { hasCalls: kinds.includes('tool_call'), hasRefusal }),
        usage: toUsage(objectOf(response['usage']), objectOf(response['tool_usage'])),
        metadata: {
          [this.#provider]: {
            api: 'openai-responses',
            // Keeps the id, model, status, `store` and unknown fields.
            ...without(response, leftOut),
            ...orderMetadata(kinds),
          },
        },
        warnings: warnings.length > 0 ? warnings : undefined,
        sources: sources.length > 0 ? sources : undefined,
      },
    })
  }

  #catchUp(output: readonly JsonValue[], events: StreamEvent[]): void {
    output.forEach((item, output_index) =>
      this.#close({ output_index }, objectOf(item) ?? {}, events),
    )
    this.#items.forEach((item, output_index) => {
      if (item && !item.isClosed) this.#close({ output_index }, item.item, events)
    })
  }

  #closeAudio(events: StreamEvent[]): void {
    if (!this.#audio) return
    const { block, transcript } = this.#audio
    const metadata = withNative(this.#provider, 'openai-responses', { type: 'audio', transcript })
    events.push({ type: 'content_block_stop', index: block, delta: { metadata } })
  }

  /** Converts an `error` event: flat `{ code, message }` by the API's types, often nested in `error`. */
  #failure(event: ResponsesEvent): Error {
    const { type: _, ...flat } = event as JsonObject
    const error = readErrorBody({ error: event.error ?? flat })
    const message = stringOf(error?.message) ?? 'The stream failed, and the vendor gave no reason.'
    return vendorFailure(this.#provider, { ...error, message })
  }
}

/** Fields of a response that only repeat the request, or that UPP stores elsewhere. */
const leftOut = new Set(
  `object output output_text usage error created_at completed_at background instructions tools
  tool_choice text temperature top_p top_logprobs presence_penalty frequency_penalty truncation
  parallel_tool_calls max_output_tokens max_tool_calls reasoning prompt input user metadata
  prompt_cache_key prompt_cache_retention prompt_cache_options safety_identifier billing image`.split(
    /\s+/,
  ),
)
