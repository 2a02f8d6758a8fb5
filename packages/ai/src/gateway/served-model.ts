import type { Clock, IdSource, JsonObject } from '@skein/base'
import type { StreamEvent } from '../contract/event.ts'
import type { BoundLLMModel, RequestScope, WireName } from '../contract/provider.ts'
import { llm, type LLMOptions, settingsOf } from '../llm.ts'
import { countTokens } from '../models.ts'
import { withoutInventedNulls } from '../wires/null-filter.ts'
import type { ServerError, ServerRequest } from '../wires/wire-server.ts'
import { oneMessage } from './one-message.ts'
import { droppedNames, readClientSettings } from './client-settings.ts'
import { withCallSettings, withScopes } from './scoped-options.ts'
import { readSibling } from './sibling-format.ts'

/** A decoded request, with the client that sent it and the vendor format that it came in. */
export interface GatewayRequest extends ServerRequest {
  readonly wire: WireName
  /** The name of the client. */
  readonly client: string
  /** The beta features of its vendor that the client asked for and the gateway allows. */
  readonly betas?: readonly string[]
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
 *
 * A model of the client's own format gets the client's parameters unchanged. Any other gets those that are settings
 * (`maxOutputTokens`, `stop`, …) under its own names; of a combination, each member gets what suits it.
 */
export function servedModel(options: ServedModelOptions): GatewayAnswer {
  const { model } = llm(options)
  const answer: GatewayAnswer = (request) => {
    const { options: own, dropped } = optionsFor(model, options, request)
    const instance = llm(own)
    const events = instance.infer(request.messages, { streaming: request.stream })
    const dataEvents = withoutInventedNulls(events, request.structure, model)
    return { events: oneMessage(dataEvents), droppedParams: dropped }
  }
  return Object.assign(answer, {
    countTokens: (request: GatewayRequest) =>
      countTokens(optionsFor(model, options, request).options, request.messages),
  })
}

/** Returns the options of one call, and the names of the client's parameters that have no effect. */
function optionsFor(
  model: BoundLLMModel,
  options: ServedModelOptions,
  request: GatewayRequest,
): { readonly options: LLMOptions; readonly dropped: readonly string[] } {
  const { params, wire, signal, clock, ids, structure } = request
  const common: LLMOptions = {
    ...options,
    tools: request.tools.map((tool) => ({
      ...tool,
      run: () => {
        throw new Error(`"${tool.name}" is a tool of the client.`)
      },
    })),
    system: [options.system, request.system].filter(Boolean).join('\n\n') || undefined,
    structure,
    signal,
    clock,
    ids,
  }
  const native = nativeScope(options, request)
  if (model.wire === wire) return { options: withScopes(common, [native], model), dropped: [] }
  const sibling = readSibling(params, wire)
  const client = readClientSettings(params, wire)
  const { options: own, dropped } = withCallSettings(common, client.settings, {
    model,
    messages: request.messages,
  })
  // Only a combination may have members of the client's own format.
  const scopes = model.wire === undefined ? [native, ...sibling.scopes] : sibling.scopes
  const isSibling = sibling.scopes.some(
    (scope) => scope.provider === model.provider && scope.wire === model.wire,
  )
  const names = droppedNames(params, client, dropped)
  return {
    options: withScopes(own, scopes, model),
    dropped: isSibling ? names.filter((name) => !sibling.names.has(name)) : names,
  }
}

/** The client's request in its own words, for models of the client's format. */
function nativeScope(options: ServedModelOptions, request: GatewayRequest): RequestScope {
  const { wire, params, systemBlocks, betas = [] } = request
  const system = systemBlocks && { system: systemBlocks }
  return {
    wire,
    params: { ...params, ...system },
    settings: settingsOf(options).settings ?? null,
    ...(system && { system: options.system ?? null }),
    ...(betas.length > 0 && { headers: { [betaHeader]: joinBetas(options, betas) } }),
  }
}

/** Beta features that the gateway itself asks for come first. */
function joinBetas({ config }: ServedModelOptions, betas: readonly string[]): string {
  const own = Object.entries(config?.headers ?? {}).find(([name]) => /^anthropic-beta$/i.test(name))
  return [...new Set([...String(own?.[1] ?? '').split(','), ...betas])]
    .map((name) => name.trim())
    .filter(Boolean)
    .join(',')
}

const betaHeader = 'anthropic-beta'
