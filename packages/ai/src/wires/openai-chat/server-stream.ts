import { encodeSse, type JsonObject, type JsonValue } from '@skein/base'
import type { MessageStopEvent, StreamEvent } from '../../contract/event.ts'
import type { EncodeContext, ServerError, WireEncoder } from '../wire-server.ts'
import { DeltaWriter, MessageWriter } from './server-delta.ts'
import { errorBody } from '../openai-server-error.ts'
import { fromStopReason } from './stop-reason.ts'
import { fromUsage } from './usage.ts'

/** Writes the events of one message as chunks. */
export class ChatEncoder implements WireEncoder {
  readonly #context: EncodeContext
  readonly #writer = new DeltaWriter()

  constructor(context: EncodeContext) {
    this.#context = context
  }

  push(event: StreamEvent): string {
    if (event.type === 'message_start') return this.#chunk({ role: 'assistant', content: '' })
    if (event.type === 'message_stop') return this.#stop(event.delta)
    const delta = this.#writer.write(event)
    return delta ? this.#chunk(delta) : ''
  }

  end(): string {
    return encodeSse({ data: '[DONE]' })
  }

  fail(error: ServerError): string {
    return encodeSse({ data: JSON.stringify(errorBody(error)) })
  }

  #stop({ stopReason, usage }: MessageStopEvent['delta']): string {
    const last = this.#chunk({}, fromStopReason(stopReason))
    if (!this.#context.request.includeUsage) return last
    return last + this.#frame({ choices: [], usage: fromUsage(usage) })
  }

  #chunk(delta: JsonObject, finishReason: string | null = null): string {
    return this.#frame({
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
    })
  }

  #frame(fields: Readonly<Record<string, JsonValue>>): string {
    const head = headOf(this.#context, 'chat.completion.chunk')
    return encodeSse({ data: JSON.stringify({ ...head, ...fields }) })
  }
}

/** The whole answer: the same deltas, joined. */
export function encodeResponse(events: readonly StreamEvent[], context: EncodeContext): JsonObject {
  const writer = new DeltaWriter()
  const message = new MessageWriter()
  let stop: MessageStopEvent['delta'] | undefined
  for (const event of events) {
    if (event.type === 'message_stop') stop = event.delta
    const delta = writer.write(event)
    if (delta) message.add(delta)
  }
  const finish_reason = fromStopReason(stop?.stopReason ?? 'other')
  return {
    ...headOf(context, 'chat.completion'),
    choices: [{ index: 0, message: message.message, logprobs: null, finish_reason }],
    ...(stop && { usage: fromUsage(stop.usage) }),
  }
}

function headOf({ id, createdAt, request }: EncodeContext, object: string): JsonObject {
  return {
    id: `chatcmpl-${id}`,
    object,
    created: Math.floor(createdAt / 1000),
    model: request.modelId,
  }
}
