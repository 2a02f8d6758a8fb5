import { type Clock, type IdSource, type JsonObject, sequentialIds, systemClock } from '@skein/base'
import type { BoundLLMModel, Fetch, LLMRequest } from '../../contract/provider.ts'
import { ErrorCode } from '../../contract/error.ts'
import { answerWire, asServerError, errorReply, type WireReply } from '../../gateway/answer-wire.ts'
import type { ServerError, ServerRequest, WireServer } from '../../wires/wire-server.ts'
import {
  scripted,
  type ScriptedModel,
  type ScriptedOptions,
  type ScriptFunction,
  type ScriptStep,
} from '../scripted.ts'
import { checkTranscript } from '../transcript/check-transcript.ts'
import {
  ConnectionCut,
  type Fault,
  untilLeft,
  withByteFault,
  withEventFault,
  toStream,
  asFetchError,
} from './faults.ts'
import { type ChunkOptions, toChunks } from './chunks.ts'
import { embeddingsAnswer, imageFrames, imagesAnswer } from './embedding-image-answers.ts'
import { isIssuedBy, signed } from './signatures.ts'
import {
  findVendorRoute,
  type Incoming,
  toVendorRequest,
  type VendorRequest,
  type VendorRoute,
} from './vendor-request.ts'

/** The settings of a vendor server. */
export interface VendorServerOptions extends ChunkOptions {
  /** Failures to simulate: a list with one entry per request, in order, or a function of the request. */
  readonly faults?:
    readonly (Fault | undefined)[] | ((request: VendorRequest, index: number) => Fault | undefined)
  /** If set, requests with another key are answered with 401. Default: every key is accepted. */
  readonly apiKey?: string
  /**
   * If true, requests that violate a rule of the vendor are answered with 400 and the rules that
   * `checkTranscript` reports. Default true.
   */
  readonly isStrict?: boolean
  /** How the scripted texts are split into deltas. */
  readonly chunks?: ScriptedOptions['chunks']
  readonly clock?: Clock
  readonly ids?: IdSource
}

/** A simulated vendor that understands all vendor formats of this package. */
export interface VendorServer {
  /** Use it as `config.fetch`, or in a vendor's own SDK: no network is used. */
  readonly fetch: Fetch
  /** All requests so far, oldest first. */
  readonly requests: readonly VendorRequest[]
  /** The scripted model that answers; its `requests` are the decoded requests. */
  readonly model: ScriptedModel
  /** Answers one request; for servers that handle the sockets themselves. */
  handle(incoming: Incoming): Promise<Outgoing>
}

/** The parts of an HTTP response. */
export interface Outgoing {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** A complete body, which is sent with its length, or the chunks of a stream. */
  readonly body: Uint8Array | AsyncGenerator<Uint8Array, void>
}

/**
 * Simulates OpenAI (Chat Completions and Responses), Anthropic, Google and Ollama from one script, with
 * embeddings and images. The path decides which vendor is simulated: `/v1/chat/completions`,
 * `/v1/responses`, `/v1/messages`, `/v1beta/models/{model}:generateContent`, `/api/chat`. The responses
 * are written from the vendors' documentation, not recorded.
 *
 *     const vendor = vendorServer([says('Hello!')], { chunkBytes: 1 })
 *     llm({ model: anthropic('claude-x'), config: { fetch: vendor.fetch, apiKey: 'any' } })
 */
export function vendorServer(
  script: readonly ScriptStep[] | ScriptFunction,
  options: VendorServerOptions = {},
): VendorServer {
  return new ScriptedVendor(script, options)
}

class ScriptedVendor implements VendorServer {
  readonly fetch: Fetch = toFetch((incoming) => this.handle(incoming))
  readonly requests: VendorRequest[] = []
  readonly model: ScriptedModel
  readonly #options: VendorServerOptions
  readonly #bound: BoundLLMModel
  readonly #clock: Clock
  readonly #ids: IdSource

  constructor(script: readonly ScriptStep[] | ScriptFunction, options: VendorServerOptions) {
    const { chunks, clock = systemClock, ids = sequentialIds('') } = options
    this.model = scripted(script, { provider: 'vendor', chunks })
    this.#bound = this.model.provider.handlers.llm!.bind(this.model)
    this.#options = options
    this.#clock = clock
    this.#ids = ids
  }

  async handle(incoming: Incoming): Promise<Outgoing> {
    const { faults = [] } = this.#options
    const route = findVendorRoute(new URL(incoming.url).pathname)
    const request = toVendorRequest(incoming, { kind: route.kind, wire: route.wire.name })
    const index = this.requests.push(request) - 1
    const fault = typeof faults === 'function' ? faults(request, index) : faults[index]
    if (fault?.kind === 'stall' && fault.afterBytes === undefined) {
      await untilLeft(incoming.signal)
    }
    if (fault?.kind === 'cut' && fault.afterBytes === undefined) {
      throw new ConnectionCut('The connection was cut.')
    }
    const reply = await this.#reply(request, route, fault, incoming.signal)
    return this.#write(reply, route.wire, fault, incoming.signal)
  }

  async #reply(
    request: VendorRequest,
    route: VendorRoute,
    fault: Fault | undefined,
    signal: AbortSignal,
  ): Promise<WireReply> {
    const { wire, kind } = route
    if (fault?.kind === 'html') {
      const { status = 502 } = fault
      const body = `<!doctype html><html><body><h1>${status} Bad Gateway</h1></body></html>`
      return { status, headers: { 'content-type': 'text/html' }, body }
    }
    if (fault?.kind === 'error') return faultReply(route, fault)
    const refusal = this.#refusal(request)
    if (refusal) return errorReply(wire, refusal)
    switch (kind) {
      case 'llm':
        return this.#infer(request, route, fault, signal)
      case 'embeddings':
        return withEventFault(
          json(embeddingsAnswer(wire.name, request.path, request.body)),
          wire,
          fault,
        )
      case 'images':
        return withEventFault(this.#images(request, wire.name), wire, fault)
      case 'image_edits':
        return withEventFault(json(imagesAnswer(wire.name, {}, this.#clock.now())), wire, fault)
      case 'models':
        return json({ object: 'list', data: [{ id: 'script', object: 'model' }] })
      case 'none':
        return errorReply(wire, {
          code: ErrorCode.InvalidRequest,
          statusCode: 404,
          message: `No vendor has ${request.method} ${request.path}.`,
        })
    }
  }

  #images({ body }: VendorRequest, wire: VendorRequest['wire']): WireReply {
    if (body['stream'] !== true) return json(imagesAnswer(wire, body, this.#clock.now()))
    const headers = { 'content-type': 'text/event-stream; charset=utf-8' }
    const frames = imageFrames(body)
    const stream = (async function* () {
      yield* frames
    })()
    return { status: 200, headers, body: stream }
  }

  #refusal(request: VendorRequest): ServerError | undefined {
    const { kind, wire, host, path, headers, search, body } = request
    const { apiKey, isStrict = true } = this.#options
    const key =
      headers['authorization']?.replace(/^Bearer /i, '') ??
      headers['x-api-key'] ??
      headers['x-goog-api-key'] ??
      headers['api-key'] ??
      new URLSearchParams(search).get('key')
    if (apiKey !== undefined && key !== apiKey) {
      // Real vendors quote the key in this error, so clients must remove secrets from errors.
      const message = `Incorrect API key provided: ${key ?? 'none'}.`
      return { code: ErrorCode.AuthenticationFailed, message }
    }
    if (!isStrict || kind !== 'llm') return undefined
    const [, modelId] = /models\/([^/:]+):/.exec(path) ?? []
    const isIssued = isIssuedBy({ wire, host })
    const issues = checkTranscript(wire, body, { isIssued, modelId })
    if (issues.length === 0) return undefined
    const message = issues.map((issue) => `${issue.message} (${issue.rule})`).join('; ')
    return { code: ErrorCode.InvalidRequest, message }
  }

  async #infer(
    { body, host, path, search }: VendorRequest,
    { wire }: VendorRoute,
    fault: Fault | undefined,
    signal: AbortSignal,
  ): Promise<WireReply> {
    let request: ServerRequest
    try {
      request = wire.decodeRequest(body, { path, search })
    } catch (error) {
      return errorReply(wire, asServerError(error))
    }
    const id = this.#ids()
    const batches = this.#bound.stream(this.#toRequest(request, signal))
    const events = signed(batches, { wire: wire.name, host }, id)
    const context = { request, id, createdAt: this.#clock.now() }
    return withEventFault(await answerWire({ wire, context, events }), wire, fault)
  }

  #toRequest(request: ServerRequest, signal: AbortSignal): LLMRequest {
    const { messages, params, system, structure } = request
    return {
      messages,
      params,
      system,
      structure,
      tools: request.tools.map((tool) => ({
        ...tool,
        run: () => {
          throw new Error('A vendor does not run the tools of its clients.')
        },
      })),
      config: {},
      signal,
      clock: this.#clock,
      ids: this.#ids,
    }
  }

  #write(
    { status, headers, body }: WireReply,
    wire: WireServer,
    fault: Fault | undefined,
    signal: AbortSignal,
  ): Outgoing {
    const { chunkBytes } = this.#options
    const isWhole = typeof body === 'string'
    const isPlain =
      isWhole && chunkBytes === undefined && fault?.kind !== 'stall' && fault?.kind !== 'cut'
    if (isPlain) return { status, headers, body: new TextEncoder().encode(body) }
    const { lineEnd = '\n', ...cut } = this.#options
    const toBytes = isWhole ? undefined : wire.binary?.toBytes
    const chunks = toChunks(isWhole ? [body] : body, isWhole ? cut : { ...cut, lineEnd }, toBytes)
    return { status, headers, body: withByteFault(chunks, fault, signal) }
  }
}

function json(body: JsonObject): WireReply {
  const headers = { 'content-type': 'application/json' }
  return { status: 200, headers, body: JSON.stringify(body) }
}

function faultReply({ wire }: VendorRoute, fault: Fault & { kind: 'error' }): WireReply {
  const { code, status, message = 'The vendor fails on request.', headers, body } = fault
  const reply = errorReply(wire, { code, message, statusCode: status })
  const own = typeof body === 'object' ? JSON.stringify(body) : body
  return { ...reply, headers: { ...reply.headers, ...headers }, body: own ?? reply.body }
}

/** Makes a `fetch` from a handler; broken connections reject as they do in `fetch`. */
function toFetch(handle: (incoming: Incoming) => Promise<Outgoing>): Fetch {
  return async (input, init) => {
    const request = new Request(input, init)
    const leaving = new AbortController()
    const signal = AbortSignal.any([request.signal, leaving.signal])
    const body = new Uint8Array(await request.arrayBuffer())
    const { method, url, headers } = request
    let outgoing: Outgoing
    try {
      outgoing = await handle({ method, url, headers, body, signal })
    } catch (error) {
      throw asFetchError(error)
    }
    const { status, headers: sent, body: bytes } = outgoing
    if (bytes instanceof Uint8Array) {
      return new Response(bytes as Uint8Array<ArrayBuffer>, { status, headers: sent })
    }
    return new Response(
      toStream(bytes, signal, () => leaving.abort()),
      { status, headers: sent },
    )
  }
}
