import { ThreadError } from '../../issue.ts'
import { inputOf, missing, ToolAssembler } from './assemble-tools.ts'
import type {
  DataUIPart,
  OpenToolPart,
  ReasoningUIPart,
  TextUIPart,
  UIFinishReason,
  UIMessage,
  UIMessageChunk,
  UIMessagePart,
} from './types.ts'
import { isObject } from '@skein/base'

/** A chunk that is not represented in the message, and the reason. */
export interface DroppedChunk {
  /** Position in the stream. */
  readonly index: number
  readonly type: string
  readonly reason: string
}

/**
 * Joins the chunks of one response into the message that the AI SDK's own client would build, in linear time.
 * The assembler also records what that message does not contain: how the stream ended, raw argument text, the
 * order of outcomes.
 */
export class UIMessageAssembler {
  readonly #message: { id: string; role: 'assistant'; metadata?: unknown; parts: UIMessagePart[] }
  readonly #texts = new Map<string, TextUIPart>()
  readonly #reasonings = new Map<string, ReasoningUIPart>()
  readonly #data = new Map<string, DataUIPart>()
  readonly #tools: ToolAssembler
  #stepStart = 0
  #count = 0

  readonly dropped: DroppedChunk[] = []
  readonly errors: string[] = []
  finishReason: UIFinishReason | undefined
  /**
   * True once the `finish` chunk has arrived. Nothing else distinguishes a complete stream from one that was
   * cut off.
   */
  isFinished = false
  abortReason: string | undefined
  isAborted = false

  /** Starts a new message, or continues `message` after an approval or a tool output of the client. */
  constructor(message?: UIMessage) {
    const last = message?.role === 'assistant' ? structuredClone(message) : undefined
    this.#message = { id: '', parts: [], ...last, role: 'assistant' }
    const { parts } = this.#message
    this.#stepStart = parts.findLastIndex((part) => part.type === 'step-start') + 1
    this.#tools = new ToolAssembler(parts)
    this.#tools.rebuild(this.#stepStart)
    for (const part of parts) if (isData(part)) this.#data.set(dataKey(part), part)
  }

  /**
   * Applies one chunk to the message. Throws, as the client does, for an unknown chunk type and for a delta
   * without a start chunk.
   */
  push(chunk: UIMessageChunk): void {
    this.#count++
    const { parts } = this.#message
    switch (chunk.type) {
      case 'text-delta': {
        const part = this.#texts.get(chunk.id) ?? missing(chunk.type, chunk.id)
        part.text += chunk.delta
        if (chunk.providerMetadata) part.providerMetadata = chunk.providerMetadata
        return
      }
      case 'reasoning-delta': {
        const part = this.#reasonings.get(chunk.id) ?? missing(chunk.type, chunk.id)
        part.text += chunk.delta
        if (chunk.providerMetadata) part.providerMetadata = chunk.providerMetadata
        return
      }
      case 'text-start': {
        const part: TextUIPart = {
          type: 'text',
          text: '',
          ...chunkMetadata(chunk),
          state: 'streaming',
        }
        this.#texts.set(chunk.id, part)
        parts.push(part)
        return
      }
      case 'reasoning-start': {
        const { id } = chunk
        const part: ReasoningUIPart = {
          type: 'reasoning',
          id,
          text: '',
          ...chunkMetadata(chunk),
          state: 'streaming',
        }
        this.#reasonings.set(id, part)
        parts.push(part)
        return
      }
      case 'text-end': {
        const part = this.#texts.get(chunk.id) ?? missing(chunk.type, chunk.id)
        part.state = 'done'
        if (chunk.citations) part.citations = chunk.citations
        if (chunk.providerMetadata) part.providerMetadata = chunk.providerMetadata
        this.#texts.delete(chunk.id)
        return
      }
      case 'reasoning-end': {
        const part = this.#reasonings.get(chunk.id) ?? missing(chunk.type, chunk.id)
        part.state = 'done'
        if (chunk.providerMetadata) part.providerMetadata = chunk.providerMetadata
        this.#reasonings.delete(chunk.id)
        return
      }
      case 'tool-input-start':
      case 'tool-input-delta':
      case 'tool-input-available':
      case 'tool-input-error':
      case 'tool-approval-request':
      case 'tool-approval-response':
      case 'tool-output-available':
      case 'tool-output-error':
      case 'tool-output-denied':
        return this.#tools.push(chunk)
      case 'custom':
      case 'file':
      case 'reasoning-file':
      case 'source-url':
      case 'source-document':
      case 'steering-message':
        parts.push(contentPart(chunk))
        return
      default:
        return this.#pushFrame(chunk)
    }
  }

  #pushFrame(chunk: UIMessageChunk): void {
    switch (chunk.type) {
      case 'start':
        if (chunk.messageId !== undefined) this.#message.id = chunk.messageId
        return this.#mergeMetadata(chunk.messageMetadata)
      case 'start-step':
        this.#message.parts.push({ type: 'step-start' })
        this.#stepStart = this.#message.parts.length
        return this.#tools.beginStep()
      case 'finish-step':
        return
      case 'reset-step':
        return this.#resetStep()
      case 'message-metadata':
        return this.#mergeMetadata(chunk.messageMetadata)
      case 'finish':
        this.isFinished = true
        this.finishReason = chunk.finishReason
        return this.#mergeMetadata(chunk.messageMetadata)
      case 'abort':
        this.isAborted = true
        this.abortReason = chunk.reason
        return
      case 'error':
        this.errors.push(chunk.errorText)
        return
      default:
        if (chunk.type.startsWith('data-'))
          return this.#pushData(chunk as DataUIPart & { transient?: boolean })
        throw new ThreadError(`The stream has a chunk of unknown type "${chunk.type}".`, {
          code: 'UI_CHUNK_UNKNOWN',
          hint: 'Unknown events travel as data-* chunks; the client fails on any other type.',
        })
    }
  }

  #pushData(chunk: DataUIPart & { transient?: boolean }): void {
    if (chunk.transient) return this.#drop(chunk.type, 'transient data is shown, never history')
    const earlier = chunk.id === undefined ? undefined : this.#data.get(dataKey(chunk))
    if (earlier) {
      earlier.data = chunk.data
      return
    }
    const part = { ...chunk }
    if (chunk.id !== undefined) this.#data.set(dataKey(chunk), part)
    this.#message.parts.push(part)
  }

  /**
   * Handles the retry of a model call: the parts since the step began are removed and listed in `dropped`.
   */
  #resetStep(): void {
    for (const part of this.#message.parts.slice(this.#stepStart)) {
      this.#drop(part.type, 'reset-step discarded it')
      if (isData(part)) this.#data.delete(dataKey(part))
    }
    this.#message.parts.length = this.#stepStart
    this.#texts.clear()
    this.#reasonings.clear()
    this.#tools.rebuild(this.#stepStart)
  }

  #drop(type: string, reason: string): void {
    this.dropped.push({ index: this.#count - 1, type, reason })
  }

  #mergeMetadata(metadata: unknown): void {
    if (metadata === undefined || metadata === null) return
    this.#message.metadata = mergeMetadata(this.#message.metadata, metadata)
  }

  /** The message so far. Parts that are still streaming contain what has arrived. */
  get message(): UIMessage {
    for (const part of this.#message.parts) {
      const tool = part as OpenToolPart
      if (tool.state === 'input-streaming') tool.input = inputOf(tool)
    }
    return this.#message
  }

  /** The raw argument text by tool part, if it was streamed. */
  get rawInputs(): ReadonlyMap<UIMessagePart, string> {
    return this.#tools.rawInputs
  }

  /** Tool parts in the order in which their outcomes arrived. */
  get outcomes(): ReadonlySet<UIMessagePart> {
    return this.#tools.outcomes
  }

  /** Tool parts whose arguments were rejected, so that the model was asked to try again. */
  get refusals(): ReadonlySet<UIMessagePart> {
    return this.#tools.refusals
  }
}

function isData(part: UIMessagePart): part is DataUIPart {
  return part.type.startsWith('data-')
}

function dataKey(part: { readonly type: string; readonly id?: string }): string {
  return `${part.type}\0${part.id ?? ''}`
}

function chunkMetadata<T>(chunk: { providerMetadata?: T }): { providerMetadata?: T } {
  return chunk.providerMetadata === undefined ? {} : { providerMetadata: chunk.providerMetadata }
}

type ContentChunk = Extract<
  UIMessageChunk,
  {
    type:
      'custom' | 'file' | 'reasoning-file' | 'source-url' | 'source-document' | 'steering-message'
  }
>

/**
 * Returns the part of a content chunk: its own fields, without keys that the client drops because it does not
 * define them.
 */
function contentPart(chunk: ContentChunk): UIMessagePart {
  const { type } = chunk
  switch (type) {
    case 'custom':
      return { type, kind: chunk.kind, ...chunkMetadata(chunk) }
    case 'file':
    case 'reasoning-file':
      return { type, mediaType: chunk.mediaType, url: chunk.url, ...chunkMetadata(chunk) }
    case 'source-url': {
      const { sourceId, url, title } = chunk
      return { type, sourceId, url, title, ...chunkMetadata(chunk) }
    }
    case 'source-document': {
      const { sourceId, mediaType, title, filename } = chunk
      return { type, sourceId, mediaType, title, filename, ...chunkMetadata(chunk) }
    }
    case 'steering-message':
      return { type, id: chunk.id, parts: chunk.parts }
    default:
      return chunk satisfies never
  }
}

/** Merges message metadata as the client does: objects are merged key by key, any other value is replaced. */
function mergeMetadata(base: unknown, change: unknown): unknown {
  if (!isObject(base) || !isObject(change)) return change
  const result: Record<string, unknown> = { ...base }
  for (const [key, value] of Object.entries(change)) {
    // The client skips these keys too, so that a stream cannot change a prototype.
    if (key === '__proto__' || key === 'constructor' || key === 'prototype' || value === undefined)
      continue
    result[key] = key in result ? mergeMetadata(result[key], value) : value
  }
  return result
}
