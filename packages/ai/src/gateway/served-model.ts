import type { Clock, IdSource, JsonObject } from '@skein/base'
import type { StreamEvent } from '../contract/event.ts'
import { llm, type LLMOptions } from '../llm.ts'
import type { ServerError, ServerRequest } from '../wires/wire.ts'
import type { WireName } from '../contract/wire-name.ts'
import { oneMessage } from './answer-wire.ts'
import { translateParams } from './translate-params.ts'

/** What a client asked, and how it asked. */
export interface GatewayRequest extends ServerRequest {
  readonly wire: WireName
  /** Name of the client. */
  readonly client: string
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly ids: IdSource
}

/** Answers a client: with a model, an agent, or anything else that speaks in events of one message. */
export type GatewayAnswer = (request: GatewayRequest) => GatewayReply | Promise<GatewayReply>

/** The events of one message, and what else goes into the response. */
export interface GatewayReply {
  readonly events: AsyncIterable<readonly StreamEvent[]>
  /** Parameters of the client that had no effect; their names go back in a header. */
  readonly droppedParams?: readonly string[]
  /** The id of the response is made from this. Default: a new one. */
  readonly id?: string
  /** Further fields of the response, in formats that have room for them (Responses). */
  readonly fields?: JsonObject
  /** Words for a failure of the events; undefined leaves it to the gateway. */
  readonly toServerError?: (error: unknown) => ServerError | undefined
}

/** Everything about a served model but what the client decides. */
export type ServedModelOptions = Omit<
  LLMOptions,
  'tools' | 'toolStrategy' | 'structure' | 'signal' | 'clock' | 'ids'
>

/**
 * A model with settings of its own, e.g. `servedModel({ model, config, middleware })`. Parameters
 * given here are defaults; a system prompt given here comes before the client's.
 */
export function servedModel(options: ServedModelOptions): GatewayAnswer {
  const { wire: target } = llm(options).model
  return (request) => {
    const { stream: streaming, messages, tools, structure, signal, clock, ids } = request
    const { params, dropped } = translateParams(request.params, request.wire, target)
    const system = [options.system, request.system].filter(Boolean).join('\n\n')
    const model = llm({
      ...options,
      params: { ...options.params, ...params },
      system: system || undefined,
      tools: tools.map((tool) => ({
        ...tool,
        run: () => {
          throw new Error(`"${tool.name}" is a tool of the client.`)
        },
      })),
      structure,
      signal,
      clock,
      ids,
    })
    return { events: oneMessage(model.infer(messages, { streaming })), droppedParams: dropped }
  }
}
