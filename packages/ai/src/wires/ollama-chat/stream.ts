import type { JsonObject, JsonValue, SseEvent } from '@skein/base'
import { RepeatedFrame } from '#server'
import { type BlockKind, StopReason, type StreamEvent } from '../../contract/event.ts'
import { withNative } from '../metadata.ts'
import { isEmpty, listOf, objectOf, textOf, without } from '../read-json.ts'
import { invalidResponse, parseFrame, vendorFailure } from '../wire-error.ts'
import type { DecodeContext, WireDecoder } from '../wire.ts'
import { readError } from './error.ts'
import { API, type OllamaDialect, type OllamaResponse } from './types.ts'
import { toUsage, usageFieldNames } from './usage.ts'

/** Converts the lines of a stream into events. A complete answer is one line with `done: true`. */
export class OllamaDecoder implements WireDecoder {
  readonly #context: DecodeContext<OllamaDialect>
  readonly #provider: string
  readonly #kinds: BlockKind[] = []
  readonly #logprobs: JsonValue[] = []
  readonly #extra: Record<string, JsonValue> = {}
  #state: 'before' | 'open' | 'done' = 'before'
  #open: 'text' | 'reasoning' | undefined
  readonly #repeated = new RepeatedFrame('content', { texts: ['created_at'] })

  constructor(context: DecodeContext<OllamaDialect>) {
    this.#context = context
    this.#provider = context.target.provider
  }

  push(frame: SseEvent): StreamEvent[] {
    const again = this.#state === 'open' ? this.#repeated.textOf(frame.data) : undefined
    if (again !== undefined) {
      const events: StreamEvent[] = []
      if (again !== '') this.#text('text', again, events)
      return events
    }
    const line: OllamaResponse = parseFrame(frame.data, this.#provider)
    const events = this.decode(line)
    if (this.#repeated.isLearning) {
      const { error, logprobs, done } = line
      const { thinking, content, tool_calls } = objectOf(line.message) ?? {}
      const hasMore = thinking || tool_calls !== undefined || error !== undefined
      // `decode` reads only the text of a line without these fields, so similar lines need no parsing.
      if (!hasMore && logprobs === undefined && done !== true && typeof content === 'string')
        this.#repeated.remember(frame.data, content)
    }
    return events
  }

  decode(line: OllamaResponse): StreamEvent[] {
    if (this.#state === 'done') return []
    const error = line.error === undefined ? undefined : readError(line as JsonObject)
    if (error) throw vendorFailure(this.#provider, error)
    const events: StreamEvent[] = []
    if (this.#state === 'before') this.#start(line, events)
    const message = objectOf(line.message)
    if (message) this.#message(message, events)
    Object.assign(this.#extra, without(line as JsonObject, apart))
    if (line.logprobs !== undefined) this.#logprobs.push(...listOf(line.logprobs))
    if (line.done === true) this.#stop(line as JsonObject, events)
    return events
  }

  end(): StreamEvent[] {
    if (this.#state === 'done') return []
    throw invalidResponse(this.#provider, 'its stream ended without a line that is done')
  }

  #start(line: OllamaResponse, events: StreamEvent[]): void {
    this.#state = 'open'
    const model = textOf(line.model)
    const delta = { provider: this.#provider, model }
    events.push({ type: 'message_start', index: 0, delta })
  }

  #message(message: JsonObject, events: StreamEvent[]): void {
    const { thinking, content, tool_calls } = message
    if (typeof thinking === 'string' && thinking !== '') this.#text('reasoning', thinking, events)
    if (typeof content === 'string' && content !== '') this.#text('text', content, events)
    for (const call of listOf(tool_calls)) this.#call(objectOf(call) ?? {}, events)
    Object.assign(this.#extra, without(message, messageKeys))
  }

  #text(kind: 'text' | 'reasoning', text: string, events: StreamEvent[]): void {
    if (this.#open !== kind) {
      this.#close(events)
      this.#open = kind
      const index = this.#kinds.push(kind) - 1
      events.push({ type: 'content_block_start', index, delta: { block: kind } })
    }
    events.push({ type: `${kind}_delta`, index: this.#kinds.length - 1, delta: { text } })
  }

  #call(call: JsonObject, events: StreamEvent[]): void {
    this.#close(events)
    const callFunction = objectOf(call['function']) ?? {}
    const { arguments: given } = callFunction
    // Most servers send no id. The generated id is unique, so that calls of different rounds are not
    // confused.
    const toolCallId = textOf(call['id']) ?? this.#context.request.ids()
    const toolName = textOf(callFunction['name']) ?? ''
    const argumentsJson = typeof given === 'string' ? given : JSON.stringify(given ?? {})
    const index = this.#kinds.push('tool_call') - 1
    // The vendor's fields besides name and arguments: e.g. the id, if there is one, and the index.
    const inside = without(callFunction, functionKeys)
    const others = without(call, callKeys)
    const native = isEmpty(inside) ? others : { ...others, function: inside }
    const metadata = withNative(this.#provider, API, native)
    events.push(
      { type: 'content_block_start', index, delta: { block: 'tool_call', toolCallId, toolName } },
      { type: 'tool_call_delta', index, delta: { toolCallId, toolName, argumentsJson } },
      { type: 'content_block_stop', index, delta: isEmpty(native) ? {} : { metadata } },
    )
  }

  #close(events: StreamEvent[]): void {
    if (!this.#open) return
    this.#open = undefined
    events.push({ type: 'content_block_stop', index: this.#kinds.length - 1, delta: {} })
  }

  #stop(line: JsonObject, events: StreamEvent[]): void {
    this.#close(events)
    this.#state = 'done'
    const { warnings } = this.#context
    const reason = textOf(line['done_reason'])
    events.push({
      type: 'message_stop',
      index: 0,
      delta: {
        stopReason: stopReasonOf(reason, this.#kinds.includes('tool_call')),
        rawStopReason: reason,
        usage: toUsage(line),
        metadata: {
          [this.#provider]: {
            api: API,
            ...without(this.#extra, usageFieldNames),
            logprobs: this.#logprobs.length > 0 ? this.#logprobs : undefined,
          },
        },
        warnings: warnings.length > 0 ? warnings : undefined,
      },
    })
  }
}

const apart = new Set(['message', 'done', 'done_reason', 'logprobs', 'error'])
const messageKeys = new Set(['role', 'content', 'thinking', 'tool_calls'])
const callKeys = new Set(['function'])
const functionKeys = new Set(['name', 'arguments'])

function stopReasonOf(reason: string | undefined, hasCalls: boolean): StopReason {
  if (reason === 'length') return StopReason.MaxTokens
  if (reason !== undefined && reason !== 'stop') return StopReason.Other
  return hasCalls ? StopReason.ToolUse : StopReason.EndTurn
}

/** Counts and durations (in nanoseconds) in the last line of a stream. */
/** The fields that `toUsage` reads. */
