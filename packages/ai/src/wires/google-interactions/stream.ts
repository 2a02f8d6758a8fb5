import type { JsonObject, JsonValue, SseEvent } from '@skein/base'
import { type BlockKind, StopReason, type StreamEvent } from '../../contract/event.ts'
import type { Source } from '../../contract/turn.ts'
import { decodeLooseBase64 } from '../../media/bytes.ts'
import { orderMetadata } from '../block-order.ts'
import { withNative } from '../metadata.ts'
import { isEmpty, listOf, numberOf, objectOf, stringOf, textOf, without } from '../read-json.ts'
import { toSources } from '../sources.ts'
import { asDecodeError, invalidResponse, parseFrame, vendorFailure } from '../wire-error.ts'
import type { DecodeContext, WireDecoder } from '../wire.ts'
import { readError } from './error.ts'
import {
  API,
  contentTypes,
  type Interaction,
  type InteractionEvent,
  type InteractionsDialect,
} from './types.ts'
import { toUsage } from './usage.ts'

/** A block that has begun, and what the vendor said of it beyond the protocol. */
interface OpenBlock {
  readonly index: number
  readonly kind: BlockKind
  readonly mimeType?: string
  native: JsonObject
}

/** A step that has begun. Steps may overlap, so each has its own state. */
type OpenStep =
  | { readonly type: 'content'; block: OpenBlock | undefined }
  | { readonly type: 'thought'; readonly block: OpenBlock; readonly summary: JsonObject[] }
  | {
      readonly type: 'call'
      readonly block: OpenBlock
      readonly toolCallId: string
      readonly toolName: string
      /** The arguments that came with the start, for a call without deltas. */
      readonly given: JsonValue | undefined
      hasDelta: boolean
    }
  /** A step of a tool that the vendor runs, or of a type that is not known here. */
  | { readonly type: 'native'; readonly block: OpenBlock; argumentsText: string }

/** Converts the events of a stream, or a complete answer, into events. */
export class InteractionsDecoder implements WireDecoder {
  readonly #context: DecodeContext<InteractionsDialect>
  readonly #provider: string
  readonly #kinds: BlockKind[] = []
  readonly #steps = new Map<number, OpenStep>()
  readonly #sources: Source[] = []
  #isStarted = false
  #isWhole = false
  #fields: JsonObject = {}
  #usage: JsonObject = {}
  #status: string | undefined

  constructor(context: DecodeContext<InteractionsDialect>) {
    this.#context = context
    this.#provider = context.target.provider
  }

  push(frame: SseEvent): StreamEvent[] {
    if (frame.data === '[DONE]') return []
    const event: InteractionEvent = parseFrame(frame.data, this.#provider)
    const events: StreamEvent[] = []
    switch (event.event_type) {
      case 'interaction.created':
      case 'interaction.completed':
        this.#interaction(objectOf(event.interaction) ?? {}, events)
        break
      case 'interaction.status_update':
        this.#readStatus(textOf(event.status), {})
        this.#readUsage(event.usage)
        break
      case 'step.start':
        this.#start(numberOf(event.index) ?? 0, objectOf(event.step) ?? {}, events)
        break
      case 'step.delta':
        this.#delta(event, events)
        break
      case 'step.stop':
        this.#readUsage(event.usage)
        this.#stop(numberOf(event.index) ?? 0, events)
        break
      default: {
        // Events of other types have nothing to read, e.g. those that are only sent to keep a connection open.
        const error = event.error === undefined ? undefined : readError(event as JsonObject)
        if (error) throw vendorFailure(this.#provider, error)
      }
    }
    return events
  }

  /** Decodes a complete answer. */
  decodeWhole(interaction: Interaction): StreamEvent[] {
    const events: StreamEvent[] = []
    const error = readError(interaction as JsonObject)
    if (error) throw vendorFailure(this.#provider, error)
    this.#isWhole = true
    this.#interaction(interaction, events)
    return events
  }

  end(): StreamEvent[] {
    const status = this.#status
    if (status === undefined) throw invalidResponse(this.#provider, 'it ended without a status')
    // A complete answer may be one of an interaction in the background, which is then asked for until it is over.
    const isPending = status === 'in_progress' || status === 'queued'
    if (isPending && !this.#isWhole)
      throw invalidResponse(this.#provider, 'it ended without interaction.completed')
    const events: StreamEvent[] = []
    this.#begin({}, events)
    for (const index of this.#steps.keys()) this.#stop(index, events)
    const { warnings } = this.#context
    events.push({
      type: 'message_stop',
      index: 0,
      delta: {
        stopReason: stopReasonOf(status, this.#kinds.includes('tool_call'), this.#fields),
        rawStopReason: status,
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

  #begin(interaction: Interaction, events: StreamEvent[]): void {
    if (this.#isStarted) return
    this.#isStarted = true
    const said = { model: textOf(interaction.model), id: textOf(interaction.id) }
    this.#fields = said
    events.push({ type: 'message_start', index: 0, delta: { provider: this.#provider, ...said } })
  }

  /** Reads an interaction: whole, or as the first or last event of a stream, which may leave out its steps. */
  #interaction(interaction: Interaction, events: StreamEvent[]): void {
    this.#begin(interaction, events)
    this.#readUsage(interaction.usage)
    this.#fields = { ...this.#fields, ...without(interaction as JsonObject, interactionKeys) }
    if (this.#kinds.length === 0)
      listOf(interaction.steps).forEach((item, index) => {
        const step = objectOf(item) ?? {}
        if (step['type'] === 'user_input') return
        this.#start(index, step, events)
        this.#stop(index, events)
      })
    this.#readStatus(textOf(interaction.status), interaction)
  }

  #readStatus(status: string | undefined, { errors }: Interaction): void {
    if (status === undefined) return
    this.#status = status
    if (status !== 'failed' && status !== 'cancelled') return
    const error = readError({ error: listOf(errors)[0] ?? null })
    const message = `The interaction was ${status}.`
    throw vendorFailure(this.#provider, { vendorType: status, ...error, message: error?.message ?? message }) // prettier-ignore
  }

  /** Reads the usage. Later counts replace earlier ones. */
  #readUsage(usage: JsonValue | undefined): void {
    this.#usage = { ...this.#usage, ...objectOf(usage) }
  }

  #start(index: number, step: JsonObject, events: StreamEvent[]): void {
    this.#begin({}, events)
    if (this.#steps.has(index)) this.#stop(index, events)
    switch (step['type']) {
      case 'model_output': {
        const open: OpenStep = { type: 'content', block: undefined }
        this.#steps.set(index, open)
        const error = objectOf(step['error'])
        if (error) this.#fields = { ...this.#fields, error }
        for (const item of listOf(step['content'])) {
          this.#endContent(open, events)
          this.#content(open, objectOf(item) ?? {}, events)
        }
        return
      }
      case 'thought': {
        const block = this.#startBlock({ block: 'reasoning' }, events)
        block.native = without(step, thoughtKeys)
        const open: OpenStep = { type: 'thought', block, summary: [] }
        this.#steps.set(index, open)
        for (const item of listOf(step['summary']))
          this.#summary(open, objectOf(item), events, true)
        return
      }
      case 'function_call': {
        const toolCallId = textOf(step['id']) ?? this.#context.request.ids()
        const toolName = textOf(step['name']) ?? ''
        const start = { block: 'tool_call', toolCallId, toolName } as const
        const block = this.#startBlock(start, events)
        block.native = without(step, callKeys)
        const given = step['arguments']
        const open: OpenStep = { type: 'call', block, toolCallId, toolName, given, hasDelta: false }
        return void this.#steps.set(index, open)
      }
      default: {
        if (isEmpty(step)) return
        const block = this.#startBlock({ block: 'native', name: nameOf(step) }, events)
        block.native = without(step, none)
        this.#steps.set(index, { type: 'native', block, argumentsText: '' })
      }
    }
  }

  #delta(event: InteractionEvent, events: StreamEvent[]): void {
    const delta = objectOf(event.delta)
    this.#readUsage(objectOf((event as JsonObject)['metadata'])?.['total_usage'])
    if (!delta) return
    const index = numberOf(event.index) ?? 0
    // A delta says of what kind its step is, so a start that was lost does no harm.
    if (!this.#steps.has(index)) this.#start(index, { type: stepOf(delta) }, events)
    const open = this.#steps.get(index)
    switch (open?.type) {
      case 'content':
        return this.#content(open, delta, events)
      case 'thought': {
        const { type, signature, content } = delta
        if (type === 'thought_signature')
          open.block.native = { ...open.block.native, ...without({ signature: signature ?? null }, none) } // prettier-ignore
        else this.#summary(open, objectOf(content) ?? delta, events, false)
        return
      }
      case 'call': {
        const { block, toolCallId, toolName } = open
        const argumentsJson = stringOf(delta['arguments']) ?? ''
        if (delta['type'] !== 'arguments_delta' || argumentsJson === '') return
        open.hasDelta = true
        const said = { toolCallId, toolName, argumentsJson }
        events.push({ type: 'tool_call_delta', index: block.index, delta: said })
        return
      }
      case 'native':
        if (delta['type'] === 'arguments_delta')
          open.argumentsText += stringOf(delta['arguments']) ?? ''
        else open.block.native = { ...open.block.native, ...without(delta, typeKey) }
        return
      case undefined:
        return
      default:
        return open satisfies never
    }
  }

  /** Reads one content, or a piece of one, of the model's output. */
  #content(open: OpenStep & { type: 'content' }, item: JsonObject, events: StreamEvent[]): void {
    switch (item['type']) {
      case 'text':
        return this.#text(open, item, events)
      case 'text_annotation_delta': {
        const block = this.#continue(open, 'text', '', events)
        this.#annotate(block, listOf(item['annotations']))
        return
      }
      case 'image':
      case 'audio':
      case 'video':
        return this.#media(open, item['type'], item, events)
      default: {
        if (isEmpty(item)) return
        this.#endContent(open, events)
        const block = this.#startBlock({ block: 'native', name: nameOf(item) }, events)
        block.native = without(item, none)
        this.#stopBlock(block, events)
      }
    }
  }

  #text(open: OpenStep & { type: 'content' }, item: JsonObject, events: StreamEvent[]): void {
    const text = stringOf(item['text']) ?? ''
    const beyond = without(item, textKeys)
    const annotations = listOf(item['annotations'])
    if (text === '' && annotations.length === 0 && isEmpty(beyond)) return
    const block = this.#continue(open, 'text', '', events)
    if (text !== '') events.push({ type: 'text_delta', index: block.index, delta: { text } })
    if (!isEmpty(beyond)) block.native = { ...block.native, ...beyond }
    this.#annotate(block, annotations)
  }

  #annotate(block: OpenBlock, annotations: readonly JsonValue[]): void {
    if (annotations.length === 0) return
    const before = listOf(block.native['annotations'])
    block.native = { ...block.native, annotations: [...before, ...annotations] }
    for (const annotation of annotations) {
      const { url, document_uri: uri, file_name: file, title, name } = objectOf(annotation) ?? {}
      this.#sources.push(...toSources(annotation, url ?? uri ?? file, title ?? name ?? file))
    }
  }

  #media(
    open: OpenStep & { type: 'content' },
    kind: 'image' | 'audio' | 'video',
    item: JsonObject,
    events: StreamEvent[],
  ): void {
    const { block: before } = open
    const data = stringOf(item['data'])
    const isMore = kind === 'audio' && before?.kind === 'audio'
    const mimeType = textOf(item['mime_type']) ?? (isMore ? before.mimeType : undefined)
    if (data === undefined || mimeType === undefined) {
      // Media that are only named by their address stay what the vendor sent.
      this.#endContent(open, events)
      const block = this.#startBlock({ block: 'native', name: kind }, events)
      block.native = without(item, none)
      return this.#stopBlock(block, events)
    }
    // Sound comes in pieces, pictures and films whole.
    if (kind !== 'audio') this.#endContent(open, events)
    const block = this.#continue(open, kind, mimeType, events)
    const delta = { data: this.#bytes(data), mimeType }
    events.push({ type: `${kind}_delta`, index: block.index, delta })
    block.native = { ...block.native, ...without(item, mediaKeys) }
    if (kind !== 'audio') this.#endContent(open, events)
  }

  #bytes(data: string): Uint8Array {
    try {
      return decodeLooseBase64(data)
    } catch (error) {
      throw asDecodeError(this.#provider, error)
    }
  }

  /** Reads a part of the summary of a thought. The texts of a stream are pieces of one part. */
  #summary(
    { block, summary }: OpenStep & { type: 'thought' },
    item: JsonObject | undefined,
    events: StreamEvent[],
    isWhole: boolean,
  ): void {
    if (!item || isEmpty(item)) return
    const text = stringOf(item['text'])
    const last = summary.at(-1)
    if (text === undefined) summary.push(item)
    else if (isWhole || typeof last?.['text'] !== 'string') summary.push({ ...item, type: 'text' })
    else summary[summary.length - 1] = { ...last, text: last['text'] + text }
    if (text) events.push({ type: 'reasoning_delta', index: block.index, delta: { text } })
  }

  /** Returns the open block of this kind, or starts a new one. */
  #continue(
    open: OpenStep & { type: 'content' },
    kind: 'text' | 'image' | 'audio' | 'video',
    mimeType: string,
    events: StreamEvent[],
  ): OpenBlock {
    const { block } = open
    if (block?.kind === kind && block.mimeType === mimeType) return block
    this.#endContent(open, events)
    return (open.block = { ...this.#startBlock({ block: kind }, events), mimeType })
  }

  #endContent(open: OpenStep & { type: 'content' }, events: StreamEvent[]): void {
    if (open.block) this.#stopBlock(open.block, events)
    open.block = undefined
  }

  #stop(index: number, events: StreamEvent[]): void {
    const open = this.#steps.get(index)
    this.#steps.delete(index)
    switch (open?.type) {
      case 'content':
        return this.#endContent(open, events)
      case 'thought': {
        const { block, summary } = open
        // One plain text is the text of the block; any other summary is kept as it came.
        const [only, ...others] = summary
        const isPlain = others.length === 0 && (!only || hasOnly(only, plainTextKeys))
        if (!isPlain) block.native = { ...block.native, summary }
        return this.#stopBlock(block, events)
      }
      case 'call': {
        const { block, toolCallId, toolName, given, hasDelta } = open
        if (!hasDelta) {
          const argumentsJson = typeof given === 'string' ? given : JSON.stringify(given ?? {})
          const delta = { toolCallId, toolName, argumentsJson }
          events.push({ type: 'tool_call_delta', index: block.index, delta })
        }
        return this.#stopBlock(block, events)
      }
      case 'native': {
        const { block, argumentsText } = open
        if (argumentsText !== '')
          block.native = { ...block.native, arguments: parsed(argumentsText) }
        return this.#stopBlock(block, events)
      }
      case undefined:
        return
      default:
        return open satisfies never
    }
  }

  #startBlock(
    delta: Extract<StreamEvent, { type: 'content_block_start' }>['delta'],
    events: StreamEvent[],
  ): OpenBlock {
    const index = this.#kinds.push(delta.block) - 1
    events.push({ type: 'content_block_start', index, delta })
    return { index, kind: delta.block, native: {} }
  }

  #stopBlock({ index, native }: OpenBlock, events: StreamEvent[]): void {
    const metadata = withNative(this.#provider, API, native)
    events.push({ type: 'content_block_stop', index, delta: isEmpty(native) ? {} : { metadata } })
  }
}

/** Fields of an interaction that are not stored in the metadata of the message: read elsewhere, or the request's. */
const interactionKeys: ReadonlySet<string> = new Set([
  'status',
  'steps',
  'usage',
  'object',
  'created',
  'updated',
  'input',
  'system_instruction',
  'tools',
  'generation_config',
  'response_format',
  'response_mime_type',
  'response_modalities',
  'safety_settings',
])
const none: ReadonlySet<string> = new Set()
const typeKey: ReadonlySet<string> = new Set(['type'])
const thoughtKeys: ReadonlySet<string> = new Set(['type', 'summary'])
const callKeys: ReadonlySet<string> = new Set(['type', 'id', 'name', 'arguments'])
const textKeys: ReadonlySet<string> = new Set(['type', 'text', 'annotations'])
const plainTextKeys: ReadonlySet<string> = new Set(['type', 'text'])
const mediaKeys: ReadonlySet<string> = new Set(['type', 'data', 'mime_type'])

function nameOf(item: JsonObject): string {
  return textOf(item['type']) ?? 'step'
}

/** Returns the type of the step that a delta belongs to. */
function stepOf({ type }: JsonObject): string {
  if (type === 'arguments_delta') return 'function_call'
  if (type === 'text_annotation_delta' || contentTypes.has(type)) return 'model_output'
  return typeof type === 'string' && !type.startsWith('thought') ? type : 'thought'
}

function hasOnly(object: JsonObject, keys: ReadonlySet<string>): boolean {
  for (const key in object) if (!keys.has(key)) return false
  return true
}

/** Returns the value of a JSON text, or the text if it is none: the step was cut off. */
function parsed(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    return text
  }
}

/** The codes of errors that say why the vendor withheld a part of the answer. */
const filterCodes = /filter|safety|blocked|prohibited|recitation/i

/** Converts the status. Statuses that are not listed (`budget_exceeded`, …) become `other`. */
function stopReasonOf(status: string, hasCalls: boolean, fields: JsonObject): StopReason {
  switch (status) {
    case 'completed':
      if (objectOf(fields['error'])) return StopReason.ContentFilter
      return hasCalls ? StopReason.ToolUse : StopReason.EndTurn
    case 'requires_action':
      return StopReason.ToolUse
    case 'incomplete': {
      const isFiltered =
        objectOf(fields['error']) !== undefined ||
        listOf(fields['errors']).some((error) =>
          filterCodes.test(String(objectOf(error)?.['code'])),
        )
      return isFiltered ? StopReason.ContentFilter : StopReason.MaxTokens
    }
    case 'requires_continuation':
      return StopReason.Pause
    default:
      return StopReason.Other
  }
}

/** Converts a stop reason to the API's status, for servers that speak this format. */
export function statusOf(reason: StopReason): string {
  switch (reason) {
    case 'tool_use':
      return 'requires_action'
    case 'max_tokens':
    case 'context_window':
    case 'content_filter':
    case 'refusal':
      return 'incomplete'
    case 'pause':
      return 'requires_continuation'
    default:
      return 'completed'
  }
}
