import type { JsonObject, JsonValue, SseEvent } from '@skein/base'
import { decodeLooseBase64 } from '../../media/bytes.ts'
import { ErrorCode } from '../../contract/error.ts'
import type { BlockKind, StreamEvent } from '../../contract/event.ts'
import { withNative } from '../native.ts'
import { isEmpty, listOf, objectOf, textOf, without } from '../read-json.ts'
import { orderMetadata } from '../transcript.ts'
import { asDecodeError, invalidResponse, parseFrame, vendorFailure } from '../wire-error.ts'
import type { DecodeContext, WireDecoder } from '../wire.ts'
import { readError } from './error.ts'
import { stopReasonOf } from './finish-reason.ts'
import { candidateKeys, firstCandidate, frameKeys, mergeFields } from './frame-fields.ts'
import { PartialArguments } from './partial-arguments.ts'
import {
  hasOnly,
  mediaKeys,
  mediaOf,
  nativeCall,
  partName,
  textKeys,
  type Media,
} from './read-part.ts'
import { API, type GoogleDialect, type GooglePart, type GoogleResponse } from './types.ts'
import { toUsage } from './usage.ts'

/** A block that neighbouring parts of the same kind are added to. */
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

/** Folds the frames of a stream into events. A whole answer is one frame. */
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

  constructor(context: DecodeContext<GoogleDialect>) {
    this.#context = context
    this.#provider = context.target.provider
  }

  push(frame: SseEvent): StreamEvent[] {
    if (frame.data === '[DONE]') return [] // not Google's own; proxies of other formats add it
    return this.decode(parseFrame(frame.data, this.#provider))
  }

  decode(frame: GoogleResponse): StreamEvent[] {
    const events: StreamEvent[] = []
    const error = frame.error === undefined ? undefined : readError(frame as JsonObject)
    if (error) throw vendorFailure(this.#provider, error)
    this.#checkPrompt(frame)
    if (!this.#isStarted) this.#start(frame, events)
    if (frame.usageMetadata !== undefined)
      this.#usage = { ...this.#usage, ...objectOf(frame.usageMetadata) }
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
        ...(warnings.length > 0 && { warnings }),
      },
    })
    return events
  }

  #checkPrompt({ promptFeedback }: GoogleResponse): void {
    if (promptFeedback === undefined) return
    const feedback = objectOf(promptFeedback)
    const reason = textOf(feedback?.['blockReason'])
    if (!reason) return
    const said = textOf(feedback?.['blockReasonMessage'])
    throw vendorFailure(this.#provider, {
      message: `The prompt was blocked (${reason})${said ? `: ${said}` : '.'}`,
      code: ErrorCode.ContentFiltered,
      vendorCode: reason,
    })
  }

  #start({ responseId, modelVersion }: GoogleResponse, events: StreamEvent[]): void {
    this.#isStarted = true
    const id = textOf(responseId)
    const model = textOf(modelVersion)
    const said = { ...(model && { model }), ...(id && { id }) }
    this.#fields = said
    events.push({ type: 'message_start', index: 0, delta: { provider: this.#provider, ...said } })
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
    const index = this.#startBlock({ block: 'native', name: partName(part) }, events)
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
    // A signature belongs to this very part: it is not joined with its neighbours.
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
    if (!this.#call && isEmpty(call)) return // the mark of an end that was already seen
    const name = textOf(call['name'])
    const native = nativeCall(part, call)
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
    // So that replay leaves out the id the vendor never gave.
    this.#stopBlock(index, native, events, isGenerated ? { generatedId: true } : undefined)
  }

  /** The open block of this kind, or a new one. */
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

  /** Ends what is open. A call left open was cut off; its arguments stay as they came. */
  #close(events: StreamEvent[]): void {
    if (this.#call) this.#stopCall(events)
    if (!this.#open) return
    const { index } = this.#open
    this.#open = undefined
    events.push({ type: 'content_block_stop', index, delta: {} })
  }
}
