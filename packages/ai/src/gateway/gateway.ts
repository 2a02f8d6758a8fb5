import { type Clock, type IdSource, type JsonValue, systemClock, uuidV4 } from '@skein/base'
import { ErrorCode, UPPError } from '../contract/error.ts'
import type { EmbeddingInstance } from '../embedding.ts'
import type { ImageInstance } from '../image.ts'
import type { ModelReference, Params } from '../contract/provider.ts'
import type { WireServer } from '../wires/wire-server.ts'
import {
  answerWire,
  errorReply,
  gatewayError,
  toClientError,
  type WireReply,
} from './answer-wire.ts'
import {
  clientFinder,
  ClientLimits,
  type GatewayClient,
  type GatewayKey,
  type GatewayLimits,
  type KeyLookup,
} from './clients.ts'
import { answerEmbeddings } from './answer-embeddings.ts'
import { answerImages } from './answer-images.ts'
import { answerModels } from './answer-models.ts'
import { readBetas } from './betas.ts'
import { jsonReply, withDropped } from './json-reply.ts'
import { findRoute, type Route } from './routes.ts'
import { type GatewayAnswer, type GatewayRequest, servedModel } from './served-model.ts'

/** The settings of a gateway: its models, clients and limits. */
export interface GatewayOptions {
  /** Models by the name that clients use. For a model with its own settings use `servedModel({ … })`. */
  readonly models: Readonly<Record<string, ModelReference | GatewayAnswer>>
  /** Embedding models by the name that clients use: `{ small: embedding({ model: openai('…') }) }`. */
  readonly embeddings?: Readonly<Record<string, EmbeddingInstance>>
  /** Image models by the name that clients use: `{ painter: image({ model: openai('gpt-image-1') }) }`. */
  readonly images?: Readonly<Record<string, ImageInstance>>
  /**
   * The beta features of Anthropic that clients may ask for with the header `anthropic-beta`; `*` at the end of a name
   * means any version. Default: `defaultBetas`, those that change neither price nor place.
   */
  readonly betas?: readonly string[]
  /**
   * A stream whose model is silent for this many milliseconds begins with its headers, and gets a ping in each further
   * interval, so that no proxy ends it. Default 10 seconds; 0 for never.
   */
  readonly pingMs?: number
  /** The clients and their keys. Without `keys`, everyone who can reach the gateway may use it. */
  readonly keys?: readonly GatewayKey[] | KeyLookup
  /** Limits of each client; the limits of its `GatewayKey` override them. */
  readonly limits?: GatewayLimits
  /**
   * Called with every failure as it was thrown, before it is converted for the client. What it throws is ignored: the
   * client is answered in any case.
   */
  readonly onError?: (error: unknown, client: string) => void
  readonly clock?: Clock
  readonly ids?: IdSource
}

/** A `fetch` handler: mount it in any server that uses `Request` and `Response`. */
export type Gateway = (request: Request) => Promise<Response>

/**
 * Serves models of any vendor to clients of OpenAI (`/v1/chat/completions`, `/v1/responses`, `/v1/embeddings`,
 * `/v1/images/generations`), Anthropic (`/v1/messages`, `/v1/messages/count_tokens`) and Google
 * (`/v1beta/models/{model}:generateContent`, `:streamGenerateContent`, `:countTokens`), and the list of models to all
 * three. Calls of tools that a client declares are sent back to it. The client's key is never sent to vendors, and
 * the gateway's keys are never sent to clients.
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
  readonly #embeddings: ReadonlyMap<string, EmbeddingInstance>
  readonly #images: ReadonlyMap<string, ImageInstance>
  readonly #findClient: (request: Request) => Promise<GatewayClient | undefined>
  readonly #limits: ClientLimits
  readonly #clock: Clock
  readonly #ids: IdSource
  readonly #startedAt: number

  constructor(options: GatewayOptions) {
    const {
      models,
      embeddings = {},
      images = {},
      keys,
      limits = {},
      clock = systemClock,
      ids = uuidV4,
    } = options
    this.#options = options
    this.#models = new Map(
      Object.entries(models).map(([name, model]) => [
        name,
        'provider' in model ? servedModel({ model }) : model,
      ]),
    )
    this.#embeddings = new Map(Object.entries(embeddings))
    this.#images = new Map(Object.entries(images))
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
      controller.abort() // ends a request to a vendor that is still open
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
    if (route.kind === 'none') throw route.error
    const { maxBodyBytes } = this.#limits.of(client)
    const body = await readJsonBody(request, maxBodyBytes, signal)
    if (route.kind === 'embed')
      return answerEmbeddings(body, (name) => this.#find(this.#embeddings, name, client), signal)
    if (route.kind === 'image') {
      const find = (name: string): ImageInstance => this.#find(this.#images, name, client)
      return answerImages(body, { find, signal, createdAt: this.#clock.now() })
    }
    const { wire } = route
    const clientRequest = wire.decodeRequest(body, { path: route.path, search: route.search })
    refuseChoices(clientRequest.params)
    const answer = this.#find(this.#models, clientRequest.modelId, client)
    const betas = readBetas(request.headers, this.#options.betas)
    const gatewayRequest: GatewayRequest = {
      ...clientRequest,
      wire: wire.name,
      client: client.name,
      betas: betas.allowed,
      signal,
      clock: this.#clock,
      ids: this.#ids,
    }
    if (route.kind === 'count') return this.#count(gatewayRequest, answer)
    const { events, droppedParams = [], id, fields, toServerError } = await answer(gatewayRequest)
    const context = {
      request: clientRequest,
      id: id ?? this.#ids(),
      createdAt: this.#clock.now(),
      fields,
    }
    const reply = await answerWire({
      wire: wire satisfies WireServer,
      context,
      events,
      pingMs: this.#options.pingMs,
      toServerError: (error) => {
        this.#tell(error, client)
        return toServerError?.(error) ?? toClientError(error)
      },
    })
    const refusedBetas = betas.refused.map((name) => `anthropic-beta: ${name}`)
    return withDropped(inGoogleList(reply, route, clientRequest.stream), [
      ...droppedParams,
      ...refusedBetas,
    ])
  }

  async #count(request: GatewayRequest, answer: GatewayAnswer): Promise<WireReply> {
    if (answer.countTokens) {
      const count = await answer.countTokens(request)
      const isGoogle = request.wire === 'google-generate'
      return jsonReply(isGoogle ? { totalTokens: count } : { input_tokens: count })
    }
    const message = `The tokens of "${request.modelId.slice(0, 200)}" cannot be counted.`
    throw gatewayError(message, 'InvalidRequest', { statusCode: 404 })
  }

  #find<T>(models: ReadonlyMap<string, T>, name: string, client: GatewayClient): T {
    const model = isAllowed(name, client) ? models.get(name) : undefined
    if (model) return model
    throw new UPPError(`There is no model "${name.slice(0, 200)}" here.`, {
      code: ErrorCode.ModelNotFound,
      provider: 'gateway',
      modality: 'llm',
      statusCode: 404,
    })
  }

  #list(route: Route & { kind: 'models' }, client: GatewayClient): WireReply {
    const all = new Map<string, unknown>([...this.#models, ...this.#embeddings, ...this.#images])
    const names = [...all.keys()].filter((name) => isAllowed(name, client))
    if (route.model !== undefined) this.#find(all, route.model, client)
    return answerModels(route, names, this.#startedAt)
  }

  #tell(error: unknown, client: GatewayClient | undefined): void {
    const ignore = (): void => {} // a broken log must not keep the client from its answer, or its place taken
    try {
      const handling: unknown = this.#options.onError?.(error, client?.name ?? '')
      if (handling instanceof Promise) handling.catch(ignore)
    } catch {
      ignore()
    }
  }
}

/** An answer has one message, so a request for several choices is refused rather than answered with one. */
function refuseChoices(params: Params): void {
  const { n, generationConfig } = params
  const { candidateCount } = (generationConfig ?? {}) as { readonly candidateCount?: unknown }
  for (const [name, count] of Object.entries({ n, candidateCount }))
    if (count !== undefined && count !== 1)
      throw gatewayError(
        `The field "${name}" asks for ${JSON.stringify(count)} answers, and only one is given.`,
        'InvalidRequest',
        { statusCode: 400 },
      )
}

/** Google streams a list of responses unless the client asks for server-sent events. */
function inGoogleList(reply: WireReply, { wire, search }: Route, stream: boolean): WireReply {
  const isList = wire.name === 'google-generate' && stream && !/[?&]alt=sse\b/.test(search)
  const { body } = reply
  if (!isList || typeof body === 'string') return reply
  return { ...reply, headers: { ...reply.headers, 'content-type': 'application/json' }, body: listed(body) } // prettier-ignore
}

async function* listed(frames: AsyncGenerator<string, void>): AsyncGenerator<string, void> {
  let between = '['
  try {
    for await (const text of frames)
      for (const [, data] of text.matchAll(/^data: (.*)$/gm)) {
        yield `${between}${data}`
        between = ',\n'
      }
    yield between === '[' ? '[]' : ']'
  } finally {
    await frames.return()
  }
}

function isAllowed(name: string, { models }: GatewayClient): boolean {
  return models === undefined || models.includes(name)
}

/** Reads the JSON body of a request and rejects it once it exceeds the limit. */
async function readJsonBody(
  request: Request,
  maxBytes: number,
  signal: AbortSignal,
): Promise<JsonValue> {
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge(maxBytes)
  const text = await readText(request, maxBytes, signal)
  try {
    return JSON.parse(text) as JsonValue // JSON.parse returns JSON
  } catch (cause) {
    throw gatewayError('The body is not JSON.', 'InvalidRequest', { statusCode: 400, cause })
  }
}

async function readText(request: Request, maxBytes: number, signal: AbortSignal): Promise<string> {
  if (!request.body) return ''
  const reader = request.body.getReader()
  const leave = (): void => void reader.cancel().catch(() => {})
  signal.addEventListener('abort', leave, { once: true })
  const decoder = new TextDecoder()
  const texts: string[] = []
  let length = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return texts.join('') + decoder.decode()
      length += value.length
      if (length > maxBytes) throw tooLarge(maxBytes)
      texts.push(decoder.decode(value, { stream: true }))
    }
  } catch (error) {
    leave()
    throw error
  } finally {
    signal.removeEventListener('abort', leave)
  }
}

function tooLarge(maxBytes: number): Error {
  const message = `The body is larger than ${maxBytes} bytes.`
  return gatewayError(message, 'InvalidRequest', { statusCode: 413 })
}

/**
 * Converts a reply to a `Response`. A stream is written only as fast as the client reads; `abandoned`
 * is called when the client disconnects. `done` is called once, however the reply ends.
 */
function toResponse(reply: WireReply, abandoned: () => void, done: () => void): Response {
  const { status, headers, body } = reply
  if (typeof body === 'string') {
    done()
    return new Response(body, { status, headers })
  }
  const encoder = new TextEncoder()
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      for (;;) {
        const { done: isOver, value } = await body.next()
        if (isOver) {
          done()
          return controller.close()
        }
        if (value !== '') return controller.enqueue(encoder.encode(value))
      }
    },
    async cancel() {
      abandoned()
      done()
      await body.return()
    },
  })
  return new Response(stream, { status, headers })
}
