import type { JsonObject, JsonValue, SseEvent } from '@skein/base'
import { StopReason, type BlockKind, type StreamEvent } from '../../contract/event.ts'
import { withNative } from '../native.ts'
import { isEmpty, listOf, objectOf, textOf, without } from '../read-json.ts'
import { invalidResponse, parseFrame, vendorFailure } from '../wire-error.ts'
import type { DecodeContext, WireDecoder } from '../wire.ts'
import { readError } from './error.ts'
import { API, type OllamaDialect, type OllamaResponse } from './types.ts'
import { toUsage, usageFieldNames } from './usage.ts'

/** Folds the lines of a stream into events. A whole answer is one line that is done. */
export class OllamaDecoder implements WireDecoder {
  readonly #context: DecodeContext<OllamaDialect>
  readonly #provider: string
  readonly #kinds: BlockKind[] = []
  readonly #logprobs: JsonValue[] = []
  #state: 'before' | 'open' | 'done' = 'before'
  #open: 'text' | 'reasoning' | undefined

  constructor(context: DecodeContext<OllamaDialect>) {
    this.#context = context
    this.#provider = context.target.provider
  }

  push(frame: SseEvent): StreamEvent[] {
    return this.decode(parseFrame(frame.data, this.#provider))
  }

  decode(line: OllamaResponse): StreamEvent[] {
    if (this.#state === 'done') return []
    const error = line.error === undefined ? undefined : readError(line as JsonObject)
    if (error) throw vendorFailure(this.#provider, error)
    const events: StreamEvent[] = []
    if (this.#state === 'before') this.#start(line, events)
    const message = objectOf(line.message)
    if (message) this.#message(message, events)
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
    const delta = { provider: this.#provider, ...(model && { model }) }
    events.push({ type: 'message_start', index: 0, delta })
  }

  #message(message: JsonObject, events: StreamEvent[]): void {
    const { thinking, content, tool_calls } = message
    if (typeof thinking === 'string' && thinking !== '') this.#text('reasoning', thinking, events)
    if (typeof content === 'string' && content !== '') this.#text('text', content, events)
    if (tool_calls === undefined) return
    for (const call of listOf(tool_calls)) this.#call(objectOf(call) ?? {}, events)
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
    const called = objectOf(call['function']) ?? {}
    const { arguments: given } = called
    // Most servers give no id; the one made here is unique, so that rounds cannot be confused.
    const toolCallId = textOf(call['id']) ?? this.#context.request.ids()
    const toolName = textOf(called['name']) ?? ''
    const argumentsJson = typeof given === 'string' ? given : JSON.stringify(given ?? {})
    const index = this.#kinds.push('tool_call') - 1
    const native = nativeCall(call, called)
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
        ...(reason && { rawStopReason: reason }),
        usage: toUsage(line),
        metadata: {
          [this.#provider]: {
            api: API,
            ...without(without(line, apart), usageFieldNames),
            ...(this.#logprobs.length > 0 && { logprobs: this.#logprobs }),
          },
        },
        ...(warnings.length > 0 && { warnings }),
      },
    })
  }
}

const apart = new Set(['message', 'done', 'done_reason', 'logprobs', 'error'])
const callKeys = new Set(['function'])
const functionKeys = new Set(['name', 'arguments'])

/** What a call says beyond its name and arguments: its id where there is one, and its index. */
function nativeCall(call: JsonObject, called: JsonObject): JsonObject {
  const inside = without(called, functionKeys)
  const beside = without(call, callKeys)
  return isEmpty(inside) ? beside : { ...beside, function: inside }
}

function stopReasonOf(reason: string | undefined, hasCalls: boolean): StopReason {
  if (reason === 'length') return StopReason.MaxTokens
  if (reason !== undefined && reason !== 'stop') return StopReason.Other
  return hasCalls ? StopReason.ToolUse : StopReason.EndTurn
}
