import type { Clock, IdSource, JsonObject } from '@skein/base'
import type { StreamEvent } from '../contract/event.ts'
import { llm, type LLMOptions } from '../llm.ts'
import type { ServerError, ServerRequest } from '../wires/wire.ts'
import type { WireName } from '../contract/provider.ts'
import { countTokens } from '../models.ts'
import { oneMessage } from './answer-wire.ts'
import { translateParams } from './translate-params.ts'

/** A decoded request, with the client that sent it and the vendor format that it came in. */
export interface GatewayRequest extends ServerRequest {
  readonly wire: WireName
  /** The name of the client. */
  readonly client: string
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly ids: IdSource
}

/** Answers a request: with a model, an agent, or anything else that produces the events of one message. */
export interface GatewayAnswer {
  (request: GatewayRequest): GatewayReply | Promise<GatewayReply>
  /** Counts the input tokens of a request, for `/v1/messages/count_tokens`. */
  readonly countTokens?: (request: GatewayRequest) => Promise<number>
}

/** The events of one message and further parts of the response. */
export interface GatewayReply {
  readonly events: AsyncIterable<readonly StreamEvent[]>
  /** Names of the client's parameters that had no effect; they are returned in a response header. */
  readonly droppedParams?: readonly string[]
  /** The response id is derived from this. Default: a new id. */
  readonly id?: string
  /** Further fields of the response, for formats that can contain them (OpenAI's Responses). */
  readonly fields?: JsonObject
  /**
   * Converts an error thrown by `events` to the error sent to the client. If it returns undefined, the
   * gateway converts the error.
   */
  readonly toServerError?: (error: unknown) => ServerError | undefined
}

/** The `llm` options of a served model, except those that the client decides. */
export type ServedModelOptions = Omit<
  LLMOptions,
  'tools' | 'toolStrategy' | 'structure' | 'signal' | 'clock' | 'ids'
>

/**
 * Serves a model with its own settings, e.g. `servedModel({ model, config, middleware })`. Parameters
 * given here are defaults; a system prompt given here comes before the client's.
 */
export function servedModel(options: ServedModelOptions): GatewayAnswer {
  const { wire: target } = llm(options).model
  const optionsOf = (
    request: GatewayRequest,
  ): LLMOptions & { readonly dropped: readonly string[] } => {
    const { tools, structure, signal, clock, ids } = request
    const { params, dropped } = translateParams(request.params, request.wire, target)
    const system = [options.system, request.system].filter(Boolean).join('\n\n')
    return {
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
      dropped,
    }
  }
  const answer: GatewayAnswer = (request) => {
    const { dropped, ...own } = optionsOf(request)
    const events = llm(own).infer(request.messages, { streaming: request.stream })
    return { events: oneMessage(events), droppedParams: dropped }
  }
  return Object.assign(answer, {
    countTokens: (request: GatewayRequest) => countTokens(optionsOf(request), request.messages),
  })
}
