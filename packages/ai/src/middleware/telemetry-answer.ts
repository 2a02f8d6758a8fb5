import type { MessageStartEvent, StreamEvent } from '../event.ts'
import { MessageFold } from '../fold-message.ts'
import type { MiddlewareContext } from '../middleware.ts'
import type { LLMRequest } from '../provider.ts'
import { providerName, usageAttributes } from './telemetry-attributes.ts'
import { outputContent } from './telemetry-content.ts'
import type { SpanAttributes } from './tracer.ts'

/** What the events of one inference tell about it. */
export class AnswerRecord {
  readonly #request: LLMRequest
  readonly #streaming: boolean
  readonly #startedAt: number
  readonly #fold: MessageFold | undefined
  #start: MessageStartEvent['delta'] = {}
  #stop: MessageFold['stop']
  #firstChunkAt: number | undefined

  constructor(request: LLMRequest, { streaming }: MiddlewareContext, isCaptured: boolean) {
    this.#request = request
    this.#streaming = streaming
    this.#startedAt = request.clock.now()
    this.#fold = isCaptured ? new MessageFold() : undefined
  }

  push(events: readonly StreamEvent[]): void {
    this.#firstChunkAt ??= this.#request.clock.now()
    this.#fold?.push(events)
    for (const event of events) {
      if (event.type === 'message_start') this.#start = event.delta
      else if (event.type === 'message_stop') this.#stop = event.delta
    }
  }

  attributes(): SpanAttributes {
    const { provider, model, id } = this.#start
    return {
      // Who answered; behind a fallback that was not known at the start.
      ...(provider !== undefined && { 'gen_ai.provider.name': providerName(provider) }),
      ...(model !== undefined && { 'gen_ai.response.model': model }),
      ...(id !== undefined && { 'gen_ai.response.id': id }),
      ...(this.#streaming && this.#firstChunkAt !== undefined && { [firstChunk]: this.#delay() }),
      ...(this.#stop && {
        'gen_ai.response.finish_reasons': [this.#stop.rawStopReason ?? this.#stop.stopReason],
        ...usageAttributes(this.#stop.usage),
      }),
      ...(this.#fold && outputContent(this.#fold, this.#request.clock)),
    }
  }

  /** Seconds, as the conventions have it. */
  #delay(): number {
    return ((this.#firstChunkAt ?? this.#startedAt) - this.#startedAt) / 1000
  }
}

const firstChunk = 'gen_ai.response.time_to_first_chunk'
