import type { JsonObject, JsonValue, SseEvent } from '@skein/base'
import { RepeatedFrame } from '#server'
import { decodeLooseBase64 } from '../../media/bytes.ts'
import { ErrorCode } from '../../contract/error.ts'
import { type BlockKind, StopReason, type StreamEvent } from '../../contract/event.ts'
import type { Source } from '../../contract/turn.ts'
import { readGoogleError } from '../google-error.ts'
import { withNative } from '../metadata.ts'
import { isEmpty, listOf, objectOf, textOf, without } from '../read-json.ts'
import { toSources } from '../sources.ts'
import { orderMetadata } from '../block-order.ts'
import { asDecodeError, invalidResponse, parseFrame, vendorFailure } from '../wire-error.ts'
import type { DecodeContext, WireDecoder } from '../wire.ts'
import { PartialArguments } from './partial-arguments.ts'
import { API, type GoogleDialect, type GooglePart, type GoogleResponse } from './types.ts'
import { toUsage } from './usage.ts'

/** An open block, to which following parts of the same kind are appended. */
interface OpenBlock {
  readonly index: number
  readonly kind: 'text' | 'reasoning' | 'audio'
  readonly mimeType: string
}

/** A call whose arguments arrive in pieces. */
interface OpenCall {
  readonly index: number
  readonly toolCallId: string
  readonly toolName: string
  readonly isGenerated: boolean
  readonly arguments: PartialArguments
  native: JsonObject
}

/** Converts the frames of a stream into events. A complete answer is one frame. */
export class GoogleDecoder implements WireDecoder {
  readonly #context: DecodeContext<GoogleDialect>
  readonly #provider: string
  readonly #kinds: BlockKind[] = []
  #isStarted = false
  #open: OpenBlock | undefined
  #call: OpenCall | undefined
  #fields: JsonObject = {}
  #usage: JsonObject = {}
  #finishReason: string | undefined
  readonly #repeated = new RepeatedFrame('text', counts)
  /** The part in the frame that `#repeated` remembers. Frames like it are decoded without JSON.parse. */
  #repeatedPart: GooglePart = {}
  /** The last frame that was decoded without JSON.parse; its usage has not been read yet. */
  #repeatedFrame: string | undefined

  constructor(context: DecodeContext<GoogleDialect>) {
    this.#context = context
    this.#provider = context.target.provider
  }

  push(frame: SseEvent): StreamEvent[] {
    if (frame.data === '[DONE]') return [] // not sent by Google itself, but by some proxies
    const again = this.#repeated.textOf(frame.data)
    if (again !== undefined) {
      const events: StreamEvent[] = []
      this.#repeatedFrame = frame.data
      this.#text(this.#repeatedPart, again, events)
      return events
    }
    const response: GoogleResponse = parseFrame(frame.data, this.#provider)
    const events = this.decode(response)
    if (this.#repeated.isLearning) {
      const part = onlyText(response)
      if (part && this.#repeated.remember(frame.data, String(part['text'])))
        this.#repeatedPart = part
    }
    return events
  }

  decode(frame: GoogleResponse): StreamEvent[] {
    const events: StreamEvent[] = []
    const error = frame.error === undefined ? undefined : readGoogleError(frame as JsonObject)
    if (error) throw vendorFailure(this.#provider, error)
    this.#checkPrompt(frame)
    if (!this.#isStarted) this.#start(frame, events)
    this.#readUsage(frame)
    if (!hasOnly(frame as JsonObject, frameKeys))
      this.#fields = mergeFields(this.#fields, without(frame as JsonObject, frameKeys))
    const candidate = firstCandidate(frame.candidates)
    if (candidate) this.#candidate(candidate, events)
    return events
  }

  end(): StreamEvent[] {
    if (this.#finishReason === undefined) {
      throw invalidResponse(this.#provider, 'it ended without a finishReason')
    }
    const events: StreamEvent[] = []
    this.#readUsage({})
    this.#close(events)
    const { warnings } = this.#context
    events.push({
      type: 'message_stop',
      index: 0,
      delta: {
        stopReason: stopReasonOf(this.#finishReason, this.#kinds.includes('tool_call')),
        rawStopReason: this.#finishReason,
        usage: toUsage(this.#usage),
        metadata: {
          [this.#provider]: { api: API, ...this.#fields, ...orderMetadata(this.#kinds) },
        },
        warnings: warnings.length > 0 ? warnings : undefined,
        sources: sourcesIn(this.#fields),
      },
    })
    return events
  }

  /** Reads the usage of a frame, after the unread usage of `#repeatedFrame`. Later counts replace earlier ones. */
  #readUsage({ usageMetadata }: GoogleResponse): void {
    const last = this.#repeatedFrame
    this.#repeatedFrame = undefined
    if (last !== undefined) this.#readUsage(JSON.parse(last) as GoogleResponse)
    if (usageMetadata !== undefined) this.#usage = { ...this.#usage, ...objectOf(usageMetadata) }
  }

  #checkPrompt({ promptFeedback }: GoogleResponse): void {
    if (promptFeedback === undefined) return
    const feedback = objectOf(promptFeedback)
    const reason = textOf(feedback?.['blockReason'])
    if (!reason) return
    const blockMessage = textOf(feedback?.['blockReasonMessage'])
    throw vendorFailure(this.#provider, {
      message: `The prompt was blocked (${reason})${blockMessage ? `: ${blockMessage}` : '.'}`,
      code: ErrorCode.ContentFiltered,
      vendorCode: reason,
    })
  }

  #start({ responseId, modelVersion }: GoogleResponse, events: StreamEvent[]): void {
    this.#isStarted = true
    const id = textOf(responseId)
    const model = textOf(modelVersion)
    const start = { model, id }
    this.#fields = start
    events.push({ type: 'message_start', index: 0, delta: { provider: this.#provider, ...start } })
  }

  #candidate(candidate: JsonObject, events: StreamEvent[]): void {
    const parts = objectOf(candidate['content'])?.['parts']
    if (Array.isArray(parts)) {
      for (const part of parts as JsonValue[]) this.#part(objectOf(part) ?? {}, events)
    }
    const reason = candidate['finishReason']
    if (typeof reason === 'string') this.#finishReason = reason
    if (!hasOnly(candidate, candidateKeys))
      this.#fields = mergeFields(this.#fields, without(candidate, candidateKeys))
  }

  #part(part: GooglePart, events: StreamEvent[]): void {
    const { text } = part
    if (typeof text === 'string') return this.#text(part, text, events)
    const call = objectOf(part['functionCall'])
    if (call) return this.#functionCall(part, call, events)
    const media = mediaOf(part)
    if (media) return this.#media(part, media, events)
    if (isEmpty(part)) return
    // A native block gets the name of the first field that identifies the part.
    const name = Object.keys(part).find((key) => !aside.has(key)) ?? 'part'
    const index = this.#startBlock({ block: 'native', name }, events)
    this.#stopBlock(index, part, events)
  }

  #text(part: GooglePart, text: string, events: StreamEvent[]): void {
    const kind = part['thought'] === true ? 'reasoning' : 'text'
    if (hasOnly(part, textKeys)) {
      if (text === '') return
      const index = this.#continue(kind, '', events)
      events.push({ type: `${kind}_delta`, index, delta: { text } })
      return
    }
    // A part with a signature becomes its own block, because the signature covers exactly this part.
    const index = this.#startBlock({ block: kind }, events)
    if (text !== '') events.push({ type: `${kind}_delta`, index, delta: { text } })
    this.#stopBlock(index, without(part, textKeys), events)
  }

  #media(part: GooglePart, { kind, mimeType, data }: Media, events: StreamEvent[]): void {
    const isJoined = kind === 'audio' && hasOnly(part, mediaKeys)
    const index = isJoined
      ? this.#continue(kind, mimeType, events)
      : this.#startBlock({ block: kind }, events)
    const bytes = this.#bytes(data)
    events.push({ type: `${kind}_delta`, index, delta: { data: bytes, mimeType } })
    if (!isJoined) this.#stopBlock(index, without(part, mediaKeys), events)
  }

  #bytes(data: string): Uint8Array {
    try {
      return decodeLooseBase64(data)
    } catch (error) {
      throw asDecodeError(this.#provider, error)
    }
  }

  #functionCall(part: GooglePart, call: JsonObject, events: StreamEvent[]): void {
    if (!this.#call && isEmpty(call)) return // an empty call marks the end of a call that is already closed
    const name = textOf(call['name'])
    // The vendor's fields besides name, id and arguments.
    const others = without(part, functionCallKey)
    const inside = without(call, callKeys)
    const native = isEmpty(inside) ? others : { ...others, functionCall: inside }
    const isMore = this.#call && (!name || call['id'] === this.#call.toolCallId)
    if (!isMore) this.#startCall({ name: name ?? '', id: textOf(call['id']), native }, events)
    const open = this.#call!
    if (isMore) open.native = { ...open.native, ...native }
    const isPartial = isMore || call['willContinue'] === true || Array.isArray(call['partialArgs'])
    let json = isPartial ? '' : JSON.stringify(call['args'] ?? {})
    try {
      for (const piece of listOf(call['partialArgs']))
        json += open.arguments.write(objectOf(piece) ?? {})
    } catch (error) {
      throw asDecodeError(this.#provider, error)
    }
    if (isPartial && call['willContinue'] !== true) json += open.arguments.end()
    this.#callDelta(json, events)
    if (call['willContinue'] !== true) this.#stopCall(events)
  }

  #startCall(
    { name, id, native }: { name: string; id: string | undefined; native: JsonObject },
    events: StreamEvent[],
  ): void {
    const toolCallId = id ?? this.#context.request.ids()
    const start = { block: 'tool_call', toolCallId, toolName: name } as const
    this.#call = {
      index: this.#startBlock(start, events),
      toolCallId,
      toolName: name,
      isGenerated: id === undefined,
      arguments: new PartialArguments(),
      native,
    }
  }

  #callDelta(argumentsJson: string, events: StreamEvent[]): void {
    const { index, toolCallId, toolName } = this.#call!
    events.push({
      type: 'tool_call_delta',
      index,
      delta: { toolCallId, toolName, argumentsJson },
    })
  }

  #stopCall(events: StreamEvent[]): void {
    const { index, isGenerated, native } = this.#call!
    this.#call = undefined
    // Marks the id as generated here, so that it is not sent back to the vendor.
    this.#stopBlock(index, native, events, isGenerated ? { generatedId: true } : undefined)
  }

  /** Returns the index of the open block of this kind, or starts a new one. */
  #continue(kind: OpenBlock['kind'], mimeType: string, events: StreamEvent[]): number {
    if (this.#open?.kind === kind && this.#open.mimeType === mimeType) return this.#open.index
    const index = this.#startBlock({ block: kind }, events)
    this.#open = { index, kind, mimeType }
    return index
  }

  #startBlock(
    delta: Extract<StreamEvent, { type: 'content_block_start' }>['delta'],
    events: StreamEvent[],
  ): number {
    this.#close(events)
    const index = this.#kinds.push(delta.block) - 1
    events.push({ type: 'content_block_start', index, delta })
    return index
  }

  #stopBlock(index: number, native: JsonObject, events: StreamEvent[], extra?: JsonObject): void {
    const hasMore = !isEmpty(native) || extra !== undefined
    const metadata = withNative(this.#provider, API, native, extra)
    events.push({ type: 'content_block_stop', index, delta: hasMore ? { metadata } : {} })
  }

  /** Ends the open block and call. An open call was cut off; its arguments stay incomplete. */
  #close(events: StreamEvent[]): void {
    if (this.#call) this.#stopCall(events)
    if (!this.#open) return
    const { index } = this.#open
    this.#open = undefined
    events.push({ type: 'content_block_stop', index, delta: {} })
  }
}

/**
 * Returns the pages that the answer is based on or cites. Each grounding chunk is such a page; each grounding
 * support, a passage of the answer with the chunks that it is based on, is kept with all its chunks.
 */
function sourcesIn(fields: JsonObject): readonly Source[] | undefined {
  const grounding = objectOf(fields['groundingMetadata'])
  const supports = listOf(grounding?.['groundingSupports'])
  const citations = objectOf(fields['citationMetadata'])
  const sources = [
    ...listOf(grounding?.['groundingChunks']).flatMap((chunk, index) => {
      const inner = Object.values(objectOf(chunk) ?? {}).find((value) => objectOf(value))
      const { uri, sourceUri, imageUri, documentName, title } = objectOf(inner) ?? {}
      const place = uri ?? sourceUri ?? imageUri ?? documentName
      const used = supports.filter((support) =>
        listOf(objectOf(support)?.['groundingChunkIndices']).includes(index),
      )
      return [chunk, ...used].flatMap((original) => toSources(original, place, title))
    }),
    ...listOf(citations?.['citationSources'] ?? citations?.['citations']).flatMap((citation) => {
      const { uri, title } = objectOf(citation) ?? {}
      return toSources(citation, uri, title)
    }),
  ]
  return sources.length > 0 ? sources : undefined
}

/**
 * The fields of a candidate (`candidateKeys`) and of a frame (`frameKeys`) that are not stored in the
 * metadata of the message.
 */
const candidateKeys: ReadonlySet<string> = new Set(['content', 'finishReason', 'index'])
const frameKeys: ReadonlySet<string> = new Set([
  'candidates',
  'usageMetadata',
  'responseId',
  'modelVersion',
  'error',
])
/** The names of the usage counts, in which otherwise equal frames may differ. */
const counts = { numbers: ['\\w*okenCount'] }
/** Each frame contains only new entries of these fields, so they are appended; others are replaced. */
const growing = new Set(['citationMetadata', 'logprobsResult'])

/** Returns the part of a frame from which `decode` reads only one text and the usage; else undefined. */
function onlyText(frame: GoogleResponse): GooglePart | undefined {
  const {
    candidates,
    usageMetadata: _,
    modelVersion: _model,
    responseId: _id,
    ...frameRest
  } = frame
  const { content, index: _index, ...inside } = firstCandidate(candidates) ?? {}
  const [first, ...more] = listOf(objectOf(content)?.['parts'])
  const part = objectOf(first) ?? {}
  const { text, thought: _thought, ...others } = part
  const isOnly = more.length === 0 && isEmpty({ ...frameRest, ...inside, ...others })
  return isOnly && typeof text === 'string' ? part : undefined
}

/** Returns the first candidate. UPP has one answer, so others are ignored. */
function firstCandidate(candidates: JsonValue | undefined): JsonObject | undefined {
  if (!Array.isArray(candidates)) return undefined
  for (const item of candidates as readonly JsonValue[]) {
    const candidate = objectOf(item)
    if (candidate && (candidate['index'] ?? 0) === 0) return candidate
  }
  return undefined
}

/**
 * Merges the fields of a frame into those of earlier frames. Lists in `before` are copies,
 * so they are extended in place.
 */
function mergeFields(before: JsonObject, after: JsonObject): JsonObject {
  let total = before
  for (const [key, value] of Object.entries(after)) {
    const fields = objectOf(value)
    if (fields && isEmpty(fields)) continue
    total = {
      ...total,
      [key]: fields && growing.has(key) ? growLists(objectOf(before[key]), fields) : value,
    }
  }
  return total
}

function growLists(before: JsonObject | undefined, after: JsonObject): JsonObject {
  const grown = Object.entries(after).map(([key, value]): [string, JsonValue | undefined] => {
    if (!Array.isArray(value)) return [key, value]
    const list = before?.[key]
    if (!Array.isArray(list)) return [key, [...(value as JsonValue[])]]
    for (const item of value as JsonValue[]) (list as JsonValue[]).push(item)
    return [key, list]
  })
  return { ...before, ...Object.fromEntries(grown) }
}

const textKeys: ReadonlySet<string> = new Set(['text', 'thought'])
const mediaKeys: ReadonlySet<string> = new Set(['inlineData'])
const callKeys = new Set(['id', 'name', 'args', 'partialArgs', 'willContinue'])
/** Fields that accompany a part but do not identify it. */
const aside = new Set(['thought', 'thoughtSignature', 'partMetadata', 'videoMetadata'])

function hasOnly(part: GooglePart, keys: ReadonlySet<string>): boolean {
  for (const key in part) if (!keys.has(key)) return false
  return true
}

interface Media {
  readonly kind: 'image' | 'audio' | 'video'
  readonly mimeType: string
  readonly data: string
}

/** Returns the media that the model generated. Drafts inside its thoughts are not part of the answer. */
function mediaOf(part: GooglePart): Media | undefined {
  const inline = objectOf(part['inlineData'])
  if (!inline || part['thought'] === true) return undefined
  const { mimeType, data } = inline
  if (typeof mimeType !== 'string' || typeof data !== 'string') return undefined
  const kind = mimeType.split('/')[0]
  const isMedia = kind === 'image' || kind === 'audio' || kind === 'video'
  return isMedia ? { kind, mimeType, data } : undefined
}

const functionCallKey = new Set(['functionCall'])

const reasons: Readonly<Record<string, StopReason>> = {
  STOP: StopReason.EndTurn,
  MAX_TOKENS: StopReason.MaxTokens,
  SAFETY: StopReason.ContentFilter,
  RECITATION: StopReason.ContentFilter,
  BLOCKLIST: StopReason.ContentFilter,
  PROHIBITED_CONTENT: StopReason.ContentFilter,
  SPII: StopReason.ContentFilter,
  IMAGE_SAFETY: StopReason.ContentFilter,
  IMAGE_PROHIBITED_CONTENT: StopReason.ContentFilter,
  IMAGE_RECITATION: StopReason.ContentFilter,
  /** The request is sent again with `continuationToken`, see `takeContinuation` in request.ts. */
  CONTINUATION: StopReason.Pause,
}

/**
 * Converts the finish reason. Reasons not listed (LANGUAGE, MALFORMED_FUNCTION_CALL, NO_IMAGE, …)
 * become `other`.
 */
function stopReasonOf(finishReason: string, hasCalls: boolean): StopReason {
  const reason = Object.hasOwn(reasons, finishReason) ? reasons[finishReason] : undefined
  if (reason === StopReason.EndTurn && hasCalls) return StopReason.ToolUse
  return reason ?? StopReason.Other
}

/** Converts a stop reason to the API's finish reason, for servers that speak this format. */
export function finishReasonOf(reason: StopReason): string {
  switch (reason) {
    case 'max_tokens':
    case 'context_window':
      return 'MAX_TOKENS'
    case 'content_filter':
    case 'refusal':
      return 'SAFETY'
    case 'other':
      return 'OTHER'
    default:
      return 'STOP'
  }
}
