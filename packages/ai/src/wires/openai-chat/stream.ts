import type { JsonObject, JsonValue, SseEvent } from '@skein/base'
import { RepeatedFrame } from '#server'
import { type BlockKind, StopReason, type StreamEvent } from '../../contract/event.ts'
import type { Source } from '../../contract/turn.ts'
import { decodeLooseBase64 } from '../../media/bytes.ts'
import { orderMetadata } from '../block-order.ts'
import { audioMimeType, parseDataUrl } from '../media.ts'
import { withNative } from '../metadata.ts'
import { readErrorBody } from '../openai-error.ts'
import { listOf, objectOf, stringOf, textOf, without } from '../read-json.ts'
import { annotationSources, toSources } from '../sources.ts'
import { asDecodeError, invalidResponse, vendorFailure } from '../wire-error.ts'
import type { DecodeContext, ValueUnwrapper, WireDecoder } from '../wire.ts'
import { ReasoningDetails } from './reasoning-details.ts'
import { ToolCalls } from './stream-calls.ts'
import type { ChatAudio, ChatChoice, ChatChunk, ChatDelta } from './types.ts'
import type { OpenAIChatDialect } from './dialect.ts'
import { toUsage } from './usage.ts'

const chunkFields = new Set(
  'id object created model choices usage error x_groq obfuscation'.split(' '),
)
const choiceFields = new Set('index delta message finish_reason logprobs usage error'.split(' '))

/** Fields with padding, with which OpenAI and Mistral hide the length of a token; they are ignored. */
const padding = { texts: ['obfuscation', 'p'] }

/**
 * The kind of the open block, to which the next text is appended. Tool calls are tracked separately,
 * because they interleave.
 */
type OpenKind = 'none' | 'text' | 'refusal' | 'reasoning' | 'audio'

/**
 * Converts chunks into events. A complete answer is decoded as one chunk whose delta is the message. A
 * block starts with its first piece and ends when a block of another kind begins.
 */
export class ChatDecoder implements WireDecoder {
  readonly #context: DecodeContext<OpenAIChatDialect>
  readonly #provider: string
  readonly #unwrapper: ValueUnwrapper | undefined
  readonly #calls: ToolCalls
  readonly #details = new ReasoningDetails()
  readonly #kinds: BlockKind[] = []
  #open: OpenKind = 'none'
  #openIndex = 0
  #audio: ChatAudio = {}
  #extra: Record<string, JsonValue> = {}
  #head: { provider: string; model?: string; id?: string } | undefined
  #usage: JsonObject | undefined
  #finishReason: string | undefined
  #hasChoice = false
  #hasRefusal = false
  #ignoresChoices = false
  #isDone = false
  readonly #repeated = new RepeatedFrame('content', padding)

  constructor(context: DecodeContext<OpenAIChatDialect>) {
    const { target, request } = context
    this.#context = context
    this.#provider = target.provider
    this.#unwrapper = context.unwrap?.()
    this.#calls = new ToolCalls({
      provider: target.provider,
      ids: request.ids,
      nextBlock: () => this.#kinds.push('tool_call') - 1,
    })
  }

  push(frame: SseEvent): StreamEvent[] {
    if (this.#isDone) return []
    if (frame.data === '[DONE]') return this.finish()
    try {
      const text = this.#repeated.textOf(frame.data)
      if (text !== undefined && frame.event === '') return this.#content(text, [])
      const chunk = JSON.parse(frame.data) as ChatChunk
      if (frame.event === 'error')
        throw this.#failure({ error: chunk.error ?? (chunk as JsonObject) })
      const events = this.decode(chunk)
      if (this.#repeated.isLearning) {
        const alone = textAlone(chunk)
        if (alone !== undefined) this.#repeated.remember(frame.data, alone)
      }
      return events
    } catch (error) {
      throw asDecodeError(this.#provider, error)
    }
  }

  end(): StreamEvent[] {
    if (this.#isDone) return []
    if (this.#finishReason !== undefined) return this.finish()
    throw invalidResponse(this.#provider, 'its stream ended before the answer did')
  }

  decode(chunk: ChatChunk): StreamEvent[] {
    const events: StreamEvent[] = []
    if (chunk.error || chunk.x_groq?.error) throw this.#failure(chunk)
    const choice = this.#choiceOf(chunk)
    if (this.#head === undefined) this.#start(chunk, events)
    if (choice) this.#readChoice(choice, events)
    const usage = chunk.usage ?? chunk.x_groq?.usage ?? choice?.usage
    if (usage) this.#usage = usage
    Object.assign(this.#extra, without(chunk as JsonObject, chunkFields))
    return events
  }

  /** Ends the message: closes all blocks and sends `message_stop`. */
  finish(): StreamEvent[] {
    if (!this.#hasChoice) throw invalidResponse(this.#provider, 'it has no choices')
    this.#isDone = true
    const raw = this.#finishReason
    const events: StreamEvent[] = []
    const rest = this.#unwrapper?.end()
    if (rest) this.#text('text', rest, events)
    this.#close(events)
    this.#calls.end(events, raw === 'length')
    const hasCalls = this.#calls.count > 0
    const warnings = this.#warnings()
    events.push({
      type: 'message_stop',
      index: 0,
      delta: {
        stopReason: toStopReason({ raw, hasCalls, hasRefusal: this.#hasRefusal }),
        rawStopReason: raw,
        usage: toUsage(this.#usage),
        metadata: { [this.#provider]: this.#metadata() },
        warnings: warnings.length > 0 ? warnings : undefined,
        sources: this.#sources(),
      },
    })
    return events
  }

  /** Returns the first choice. Callers can request several (`n`), but UPP has one answer. */
  #choiceOf({ choices }: ChatChunk): ChatChoice | undefined {
    if (!choices) return undefined
    const first = choices[0]
    if (choices.length > 1 || first?.index) this.#ignoresChoices = true
    return first?.index ? choices.find((choice) => !choice.index) : first
  }

  /**
   * Starts the message, but not with Azure's first chunk, which is about the prompt and has no model
   * or id.
   */
  #start({ id, model, choices }: ChatChunk, events: StreamEvent[]): void {
    if (!id && !model && !choices?.length) return
    this.#head = { provider: this.#provider, model: model || undefined, id: id || undefined }
    events.push({ type: 'message_start', index: 0, delta: this.#head })
  }

  #readChoice(choice: ChatChoice, events: StreamEvent[]): void {
    this.#hasChoice = true
    const delta = choice.delta ?? choice.message
    if (delta) this.#readDelta(delta, events)
    if (choice.logprobs) this.#keep('logprobs', choice.logprobs)
    // Fields that UPP does not have. Each chunk has only the new entries of a list, and describes again the rest.
    const rest = without(choice as JsonObject, choiceFields)
    for (const key in rest) {
      const value = rest[key]!
      const isObject = objectOf(value) !== undefined
      if (Array.isArray(value)) this.#keep(key, value)
      else this.#extra[key] = isObject ? Object.assign({}, this.#extra[key], value) : value
    }
    if (!choice.finish_reason) return
    this.#finishReason = choice.finish_reason
    const { error } = choice as { error?: JsonValue }
    if (error || failureReasons.has(choice.finish_reason)) throw this.#failure({ error: error! })
  }

  #readDelta(delta: ChatDelta, events: StreamEvent[]): void {
    const { content } = delta
    const reasoning = delta.reasoning_content ?? delta.reasoning
    if (reasoning || delta.reasoning_details) this.#readReasoning(reasoning, delta, events)
    if (typeof content === 'string') this.#content(content, events)
    else if (content) this.#parts(content, events)
    for (const key in delta) {
      switch (key) {
        case 'content':
        case 'role':
        case 'reasoning':
        case 'reasoning_content':
        case 'reasoning_details':
          continue
        default:
          this.#readField(key, delta, events)
      }
    }
  }

  #readField(key: string, delta: ChatDelta, events: StreamEvent[]): void {
    const value = (delta as JsonObject)[key]
    if (value === null || value === undefined) return
    switch (key) {
      case 'refusal':
        if (value !== '') this.#refusal(String(value), events)
        return
      case 'tool_calls':
        for (const piece of delta.tool_calls ?? []) this.#calls.push(piece, events)
        return
      case 'function_call':
        return this.#calls.push({ index: -1, function: delta.function_call! }, events)
      case 'audio':
        return this.#readAudio(delta.audio!, events)
      case 'images':
        for (const image of delta.images ?? []) this.#image(image, events)
        return
      default:
        return this.#keep(key, value)
    }
  }

  #content(content: string, events: StreamEvent[]): StreamEvent[] {
    const text = this.#unwrapper ? this.#unwrapper.push(content) : content
    if (text !== '') this.#text('text', text, events)
    return events
  }

  #refusal(text: string, events: StreamEvent[]): void {
    this.#hasRefusal = true
    this.#text('refusal', text, events)
  }

  #text(kind: 'text' | 'refusal', text: string, events: StreamEvent[]): void {
    if (this.#open !== kind) this.#switchTo(kind, 'text', events)
    events.push({ type: 'text_delta', index: this.#openIndex, delta: { text } })
  }

  /**
   * Reads reasoning. OpenRouter sends reasoning both as text and as details. The details are kept to be sent
   * back; their text is used only if there is no other text.
   */
  #readReasoning(field: unknown, delta: ChatDelta, events: StreamEvent[]): void {
    const fromDetails = this.#details.push(listOf(delta.reasoning_details))
    this.#reasoning(stringOf(field) || fromDetails, events)
  }

  #reasoning(text: string, events: StreamEvent[]): void {
    if (text === '') return
    if (this.#open !== 'reasoning') this.#switchTo('reasoning', 'reasoning', events)
    events.push({ type: 'reasoning_delta', index: this.#openIndex, delta: { text } })
  }

  /** Reads content that consists of parts, as Mistral sends it when the model reasons. */
  #parts(parts: readonly JsonObject[], events: StreamEvent[]): void {
    for (const part of parts) {
      if (part['type'] === 'text') this.#content(stringOf(part['text']) ?? '', events)
      else if (part['type'] === 'thinking') {
        for (const piece of listOf(part['thinking'])) {
          this.#reasoning(stringOf(objectOf(piece)?.['text']) ?? '', events)
        }
        if (textOf(part['signature']) !== undefined)
          this.#keep('thinking_signatures', [part['signature']!])
      } else if (part['type'] === 'image_url') this.#image(part, events)
      else this.#keep('content_parts', [part])
    }
  }

  #readAudio(audio: ChatAudio, events: StreamEvent[]): void {
    if (this.#open !== 'audio') this.#switchTo('audio', 'audio', events)
    const transcript = (this.#audio.transcript ?? '') + (audio.transcript ?? '')
    this.#audio = { ...this.#audio, ...audio, transcript, data: '' }
    if (!audio.data) return
    const format = textOf(objectOf(this.#context.request.params['audio'])?.['format']) ?? 'wav'
    events.push({
      type: 'audio_delta',
      index: this.#openIndex,
      delta: { data: decodeLooseBase64(audio.data), mimeType: audioMimeType(format) },
    })
  }

  /** Adds an image, which arrives in one piece, inline or by address. */
  #image(image: JsonObject, events: StreamEvent[]): void {
    this.#close(events)
    const index = this.#kinds.push('image') - 1
    const url = textOf(objectOf(image['image_url'])?.['url'] ?? image['image_url']) ?? ''
    const inline = parseDataUrl(url)
    const data = inline ? decodeLooseBase64(inline.data) : new Uint8Array()
    const mimeType = inline?.mimeType ?? 'image/png'
    const metadata = withNative(this.#provider, 'openai-chat', image)
    events.push(
      { type: 'content_block_start', index, delta: { block: 'image' } },
      { type: 'image_delta', index, delta: { data, mimeType, url: inline ? undefined : url } },
      { type: 'content_block_stop', index, delta: { metadata } },
    )
  }

  #switchTo(kind: OpenKind, block: BlockKind, events: StreamEvent[]): void {
    this.#close(events)
    this.#open = kind
    this.#openIndex = this.#kinds.push(block) - 1
    events.push({ type: 'content_block_start', index: this.#openIndex, delta: { block } })
  }

  #close(events: StreamEvent[]): void {
    if (this.#open === 'none') return
    let native: JsonObject | undefined
    if (this.#open === 'refusal') native = { type: 'refusal' }
    if (this.#open === 'audio') native = without(this.#audio as JsonObject, new Set(['data']))
    const metadata = native && withNative(this.#provider, 'openai-chat', native)
    events.push({
      type: 'content_block_stop',
      index: this.#openIndex,
      delta: metadata ? { metadata } : {},
    })
    this.#open = 'none'
  }

  #keep(key: string, value: JsonValue): void {
    mergeField(this.#extra, key, value)
  }

  #failure({ error, x_groq }: ChatChunk): Error {
    const vendorError = readErrorBody({ error: error ?? x_groq?.error ?? {} })
    const message = vendorError?.message ?? 'unknown error'
    return vendorFailure(this.#provider, {
      ...vendorError,
      message: message === 'unknown error' ? 'The vendor broke off its answer.' : message,
    })
  }

  #warnings(): DecodeContext['warnings'] {
    if (!this.#ignoresChoices) return this.#context.warnings
    const message = 'Only the first choice is the answer.'
    return [...this.#context.warnings, { code: 'choices_ignored', message, pointer: '/params/n' }]
  }

  /** Returns the cited sources: annotations (OpenAI, OpenRouter, Groq), addresses (xAI), references (Mistral). */
  #sources(): readonly Source[] | undefined {
    const { annotations, citations, content_parts } = this.#extra
    const sources = [
      ...annotationSources(annotations),
      ...listOf(citations).flatMap((url) => toSources(url, url, undefined)),
      ...listOf(content_parts).flatMap((part) =>
        listOf(objectOf(part)?.['reference_ids']).flatMap((id) => toSources(part, id, undefined)),
      ),
    ]
    return sources.length > 0 ? sources : undefined
  }

  #metadata(): JsonObject {
    const details = this.#details.list
    const { provider: _, ...head } = { ...this.#head }
    return {
      api: 'openai-chat',
      ...head,
      ...this.#extra,
      ...(details.length > 0 ? { reasoning_details: details } : {}),
      ...orderMetadata(this.#kinds),
    }
  }
}

/** Finish reasons of OpenAI, Mistral, Together and others. */
const stopReasons: ReadonlyMap<string, StopReason> = new Map([
  ['stop', StopReason.EndTurn],
  ['eos', StopReason.EndTurn],
  ['end_turn', StopReason.EndTurn],
  ['length', StopReason.MaxTokens],
  ['max_tokens', StopReason.MaxTokens],
  ['model_length', StopReason.ContextWindow],
  ['tool_calls', StopReason.ToolUse],
  ['function_call', StopReason.ToolUse],
  ['content_filter', StopReason.ContentFilter],
  ['stop_sequence', StopReason.StopSequence],
])

/** Finish reasons of a vendor that failed in the middle; the incomplete answer is discarded. */
const failureReasons: ReadonlySet<string> = new Set(['error', 'insufficient_system_resource'])

interface Ending {
  readonly raw: string | undefined
  readonly hasCalls: boolean
  readonly hasRefusal: boolean
}

function toStopReason({ raw, hasCalls, hasRefusal }: Ending): StopReason {
  const reason = (raw !== undefined && stopReasons.get(raw)) || StopReason.Other
  const isPlainEnd = reason === StopReason.EndTurn || reason === StopReason.Other
  // Some servers send "stop" after tool calls; callers should always see `tool_use`.
  if (isPlainEnd && hasCalls) return StopReason.ToolUse
  return isPlainEnd && hasRefusal ? StopReason.Refusal : reason
}

/** Converts a stop reason to OpenAI's finish reason, for servers that speak this format. */
export function fromStopReason(reason: StopReason): string {
  switch (reason) {
    case StopReason.MaxTokens:
    case StopReason.ContextWindow:
      return 'length'
    case StopReason.ToolUse:
      return 'tool_calls'
    case StopReason.ContentFilter:
      return 'content_filter'
    default:
      return 'stop'
  }
}

/**
 * Merges a value into a field that grows over a stream: lists are appended, objects merged field by
 * field, other values replaced. Values are copied, so only `fields` changes; the cost is linear.
 */
function mergeField(fields: Record<string, JsonValue>, key: string, value: JsonValue): void {
  if (key === '__proto__' || value === null) return
  const before = fields[key]
  const object = objectOf(value)
  if (Array.isArray(value)) {
    if (!Array.isArray(before)) fields[key] = [...value]
    else for (const item of value) before.push(item)
  } else if (object) {
    // Objects in `fields` were created here, so they may be changed.
    const total = (objectOf(before) ?? {}) as Record<string, JsonValue>
    for (const inner of Object.keys(object)) mergeField(total, inner, object[inner]!)
    fields[key] = total
  } else fields[key] = value
}

/** Returns the text of a chunk that adds nothing else to the message; undefined for other chunks. */
function textAlone({ choices, usage, error, x_groq }: ChatChunk): string | undefined {
  if (!Array.isArray(choices) || choices.length !== 1 || usage || error || x_groq) return undefined
  const { delta, logprobs, usage: its, ...rest } = (choices[0] ?? {}) as Choice
  if (logprobs || its || typeof delta?.['content'] !== 'string') return undefined
  // Objects in which chunks describe their choice again add nothing to those of the chunk that was read.
  if (Object.values(rest).some((value) => value && !objectOf(value))) return undefined
  for (const key in delta)
    if (key !== 'content' && key !== 'role' && delta[key] !== null) return undefined
  return delta['content']
}

interface Choice {
  readonly delta?: JsonObject
  readonly logprobs?: JsonObject
  readonly usage?: JsonObject
}
