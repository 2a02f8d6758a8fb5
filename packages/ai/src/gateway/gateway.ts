import { systemClock, uuidV4, type Clock, type IdSource } from '@skein/base'
import { ErrorCode, UPPError } from '../contract/error.ts'
import type { ModelReference } from '../contract/provider.ts'
import type { WireServer } from '../wires/wire-server.ts'
import { answerWire, errorReply, type WireReply } from './answer-wire.ts'
import { clientFinder, type GatewayClient, type GatewayKey, type KeyLookup } from './clients.ts'
import { gatewayError, toClientError } from './gateway-error.ts'
import { ClientLimits, type GatewayLimits } from './limits.ts'
import { listModels } from './list-models.ts'
import { readJsonBody } from './read-body.ts'
import { findRoute, type Route } from './routes.ts'
import { servedModel, type GatewayAnswer } from './served-model.ts'
import { toResponse } from './to-response.ts'

export interface GatewayOptions {
  /** Models by the name that clients ask for. Settings of their own: `servedModel({ … })`. */
  readonly models: Readonly<Record<string, ModelReference | GatewayAnswer>>
  /** Who may ask. Without it, everyone who reaches the gateway. */
  readonly keys?: readonly GatewayKey[] | KeyLookup
  /** For each client, unless its key says otherwise. */
  readonly limits?: GatewayLimits
  /** Told of every failure as it was, before it is put in words for the client. */
  readonly onError?: (error: unknown, client: string) => void
  readonly clock?: Clock
  readonly ids?: IdSource
}

/** A `fetch` handler: mount it in any server that speaks `Request` and `Response`. */
export type Gateway = (request: Request) => Promise<Response>

/**
 * Serves models of any vendor to clients of OpenAI (`/v1/chat/completions`, `/v1/responses`) and
 * Anthropic (`/v1/messages`). Tools that a client declares are its own: calls go back to it. The
 * key of a client goes no further, and neither do the keys of the gateway come out.
 *
 *     const handler = gateway({ models: { small: openai('gpt-5-mini'), big: anthropic('claude-opus-4-5') } })
 */
export function gateway(options: GatewayOptions): Gateway {
  const service = new Service(options)
  return (request) => service.handle(request)
}

class Service {
  readonly #options: GatewayOptions
  readonly #models: ReadonlyMap<string, GatewayAnswer>
  readonly #findClient: (request: Request) => Promise<GatewayClient | undefined>
  readonly #limits: ClientLimits
  readonly #clock: Clock
  readonly #ids: IdSource
  readonly #startedAt: number

  constructor(options: GatewayOptions) {
    const { models, keys, limits = {}, clock = systemClock, ids = uuidV4 } = options
    this.#options = options
    this.#models = new Map(
      Object.entries(models).map(([name, model]) => [
        name,
        'provider' in model ? servedModel({ model }) : model,
      ]),
    )
    this.#findClient = clientFinder(keys)
    this.#limits = new ClientLimits(limits, clock)
    this.#clock = clock
    this.#ids = ids
    this.#startedAt = clock.now()
  }

  async handle(request: Request): Promise<Response> {
    const controller = new AbortController()
    const leave = (): void => controller.abort(request.signal.reason)
    request.signal.addEventListener('abort', leave, { once: true })
    let release = (): void => {}
    const done = (): void => {
      request.signal.removeEventListener('abort', leave)
      release()
    }
    const route = findRoute(request)
    let client: GatewayClient | undefined
    try {
      if (request.signal.aborted) leave()
      client = await this.#findClient(request)
      if (!client) throw gatewayError('The API key is missing or unknown.', 'AuthenticationFailed')
      release = this.#limits.enter(client)
      const reply = await this.#answer(request, route, client, controller.signal)
      return toResponse(reply, () => controller.abort(), done)
    } catch (error) {
      this.#tell(error, client)
      return toResponse(errorReply(route.wire, toClientError(error)), () => {}, done)
    }
  }

  async #answer(
    request: Request,
    route: Route,
    client: GatewayClient,
    signal: AbortSignal,
  ): Promise<WireReply> {
    if (route.kind === 'models') return this.#list(route, client)
    if (route.kind !== 'infer') throw route.error
    const { maxBodyBytes } = this.#limits.of(client)
    const body = await readJsonBody(request, maxBodyBytes, signal)
    const { wire } = route
    const decoded = wire.decodeRequest(body, { path: route.path, search: route.search })
    const answer = this.#modelOf(decoded.modelId, client)
    const { events, droppedParams, id, fields, toServerError } = await answer({
      ...decoded,
      wire: wire.name,
      client: client.name,
      signal,
      clock: this.#clock,
      ids: this.#ids,
    })
    const context = {
      request: decoded,
      id: id ?? this.#ids(),
      createdAt: this.#clock.now(),
      ...(fields && { fields }),
    }
    const reply = await answerWire({
      wire: wire satisfies WireServer,
      context,
      events,
      toServerError: (error) => {
        this.#tell(error, client)
        return toServerError?.(error) ?? toClientError(error)
      },
    })
    if (!droppedParams?.length) return reply
    const told = { 'skein-dropped-params': droppedParams.join(', ') }
    return { ...reply, headers: { ...reply.headers, ...told } }
  }

  #modelOf(name: string, client: GatewayClient): GatewayAnswer {
    const model = isAllowed(name, client) ? this.#models.get(name) : undefined
    if (model) return model
    throw new UPPError(`There is no model "${name.slice(0, 200)}" here.`, {
      code: ErrorCode.ModelNotFound,
      provider: 'gateway',
      modality: 'llm',
      statusCode: 404,
    })
  }

  #list(route: Route & { kind: 'models' }, client: GatewayClient): WireReply {
    const names = [...this.#models.keys()].filter((name) => isAllowed(name, client))
    if (route.model !== undefined) this.#modelOf(route.model, client)
    return listModels(route, names, this.#startedAt)
  }

  #tell(error: unknown, client: GatewayClient | undefined): void {
    this.#options.onError?.(error, client?.name ?? '')
  }
}

function isAllowed(name: string, { models }: GatewayClient): boolean {
  return models === undefined || models.includes(name)
}
