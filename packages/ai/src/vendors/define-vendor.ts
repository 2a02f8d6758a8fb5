import type { JsonObject, JsonValue } from '@skein/base'
import { failing } from '../contract/abort-race.ts'
import type { UserContent } from '../contract/content.ts'
import type { Message } from '../contract/message.ts'
import type { UPPError } from '../contract/error.ts'
import {
  createProvider,
  type BoundLLMModel,
  type EndpointRequest,
  type LLMCapabilities,
  type LLMHandler,
  type LLMRequest,
  type ModelReference,
  type ModelSettings,
  type Params,
  type Provider,
  type Settings,
  type WireName,
} from '../contract/provider.ts'
import type { EmbeddingHandler } from '../embedding.ts'
import type { ImageHandler } from '../image.ts'
import { jsonBody, type VendorEndpoint, written } from '../transport/endpoint.ts'
import type { DecodeContext, EncodedRequest, RequestMode, Target, Wire } from '../wires/wire.ts'
import { withSettings } from '../wires/with-settings.ts'
import type { StreamEvent } from '../contract/event.ts'
import { type VendorAnswer, contextOf, type VendorCall } from '../transport/attempt.ts'
import { FrameReader, JsonReader } from '../transport/read-answer.ts'
import { chooseReader } from '../transport/choose-reader.ts'
import { isInPieces } from '../transport/transport.ts'
import { type AnswerReader, runForOne, VendorRun } from '../transport/vendor-run.ts'
import type { BackgroundAnswers, BackgroundCall } from './background-answer.ts'

/**
 * The definition of a vendor: its address, keys and headers, and how each modality is handled.
 * `defineVendor` makes a provider from it.
 */
export interface VendorDefinition {
  readonly name: string
  /**
   * The address with its version prefix, e.g. `https://api.openai.com/v1`. `config.baseUrl` replaces it.
   */
  readonly baseUrl: string
  /** Environment variables that may hold the key; the first one set is used. Empty: no key is needed. */
  readonly keyVariables: readonly string[]
  /** Makes the authentication headers. Default: `authorization: Bearer <key>`. */
  readonly authHeaders?: (key: string) => Readonly<Record<string, string>>
  /** Headers sent with every request, e.g. a version header. */
  readonly headers?: Readonly<Record<string, string>>
  readonly llm?: VendorLLM | ((reference: ModelReference) => VendorLLM)
  readonly embedding?: (endpoint: VendorEndpoint) => EmbeddingHandler
  readonly image?: (endpoint: VendorEndpoint) => ImageHandler
}

/** The format of a vendor's language models, the vendor's deviations from it (dialect), and its capabilities. */
export interface VendorLLM<Dialect = unknown> {
  readonly wire: Wire<Dialect>
  readonly dialect: Dialect
  readonly capabilities: LLMCapabilities
  /** The address and authentication of this model, where they depend on it, e.g. on its region. */
  readonly endpoint?: Partial<Pick<VendorEndpoint, 'baseUrl' | 'authorizer'>>
  /** See `BoundLLMModel.region`. */
  readonly region?: string | undefined
  /** For a vendor that makes answers in the background. */
  readonly background?: BackgroundAnswers
}

/** A provider whose vendor documents its parameters and model ids. Other ids are accepted too. */
export type Vendor<Known, Ids extends string = never> = Pick<Provider, 'name' | 'handlers'> &
  // Any string, written so that editors still complete the known ids.
  ((modelId: Ids | (string & {})) => ModelReference<Known>)

/**
 * Makes a provider that talks to the vendor over HTTP, with keys, retries and limits. Where the result is
 * declared to be a `Vendor`, its models carry the types of the vendor's parameters.
 */
export function defineVendor<Made extends Provider = Provider<Params>>(
  definition: VendorDefinition,
): Made {
  const { name, baseUrl, keyVariables, headers = {}, llm, embedding, image } = definition
  const endpoint: VendorEndpoint = Object.freeze({
    name,
    baseUrl,
    keyVariables,
    headers,
    authHeaders: definition.authHeaders ?? ((key) => ({ authorization: `Bearer ${key}` })),
  })
  return createProvider({
    name,
    llm: llm && llmHandler(endpoint, llm),
    embedding: embedding?.(endpoint),
    image: image?.(endpoint),
  }) as Provider as Made // known ids and parameters exist only in types
}

function llmHandler(
  endpoint: VendorEndpoint,
  llm: NonNullable<VendorDefinition['llm']>,
): LLMHandler {
  const choose = typeof llm === 'function' ? llm : () => llm
  return {
    get capabilities(): LLMCapabilities {
      // The capabilities of the API that is used when a model reference names no API.
      const provider = createProvider({ name: endpoint.name })
      return Object.freeze({ ...choose({ modelId: '', provider }).capabilities })
    },
    bind: (reference: ModelReference) =>
      new HttpModel(endpoint, reference.modelId, choose(reference)),
  }
}

/** One model over HTTP. Complete and streamed answers use the same code path. */
class HttpModel implements BoundLLMModel {
  readonly modelId: string
  readonly provider: string
  readonly capabilities: LLMCapabilities
  readonly wire: WireName
  readonly readData: BoundLLMModel['readData']
  readonly identity: JsonObject
  readonly region: string | undefined
  readonly #endpoint: VendorEndpoint
  readonly #wire: Wire
  readonly #target: Target
  readonly #background: BackgroundAnswers | undefined

  constructor(
    endpoint: VendorEndpoint,
    modelId: string,
    { wire, dialect, capabilities, background, endpoint: own, region }: VendorLLM,
  ) {
    this.modelId = modelId
    this.provider = endpoint.name
    this.capabilities = Object.freeze({ ...capabilities })
    this.#endpoint = own ? { ...endpoint, ...own } : endpoint
    this.region = region
    this.#wire = wire
    this.wire = wire.name
    this.readData = wire.readData
    this.identity = { api: wire.name, baseUrl: this.#endpoint.baseUrl }
    this.#background = background
    this.#target = { provider: endpoint.name, modelId, dialect }
  }

  async complete(request: LLMRequest): Promise<readonly StreamEvent[]> {
    const { call, context } = this.#encode(request, 'complete')
    const events = await runForOne(call, (answer) => this.#reader(answer, call, context, false))
    if (!this.#background) return events
    const decode = (body: JsonValue): Batch => this.#wire.decodeResponse(body, context)
    return this.#background.await(events, { ...this.#backgroundCall(request), decode })
  }

  stream(request: LLMRequest): AsyncIterable<readonly StreamEvent[]> {
    try {
      const { call, context } = this.#encode(request, 'stream')
      const run = new VendorRun(call, (answer) => this.#reader(answer, call, context, true))
      return this.#background?.isRequested(request.params)
        ? this.#background.stopOnLeave(run, this.#backgroundCall(request))
        : run
    } catch (error) {
      return failing(error)
    }
  }

  #backgroundCall(request: LLMRequest): BackgroundCall {
    return { request, provider: this.provider, send: (asked) => this.send(asked) }
  }

  refuse(block: UserContent): UPPError | undefined {
    return this.#wire.refuse(block, this.#target)
  }

  writeSettings(settings: Settings, messages?: readonly Message[]): ModelSettings {
    const all = Object.keys(settings) as (keyof Settings)[]
    const written = this.#wire.writeSettings?.(settings, this.#target, {}, messages)
    return written ?? { params: {}, dropped: all }
  }

  encode(request: LLMRequest): { readonly path: string; readonly body: string } {
    const { path, body } = this.#encodeRequest(
      withSettings(request, this.#wire, this.#target).request,
      'complete',
    )
    return { path, body }
  }

  send({ body, ...asked }: EndpointRequest): Promise<JsonValue> {
    const context = { provider: this.provider, modality: 'llm' } as const
    const text = body && jsonBody(body, context)
    const call = this.#call({ ...asked, body: text, headers: { accept: 'application/json' } })
    return runForOne(call, (answer) => new JsonReader(answer, call, (json) => json))
  }

  #call(parts: Omit<VendorCall, 'endpoint' | 'modality' | 'decodeError'>): VendorCall {
    return {
      ...parts,
      endpoint: this.#endpoint,
      modality: 'llm',
      decodeError: (response) => this.#wire.decodeError(response, this.#target),
    }
  }

  #encode(given: LLMRequest, mode: RequestMode): { call: VendorCall; context: DecodeContext } {
    const { config, signal, clock } = given
    const target = this.#target
    const { request, warnings: dropped } = withSettings(given, this.#wire, target)
    const encoded = this.#encodeRequest(request, mode)
    const { path, headers, warnings: changed, unwrap } = encoded
    const warnings = dropped.length > 0 ? [...dropped, ...changed] : changed
    const accept = mode === 'stream' ? streamTypes[this.#wire.framing] : 'application/json'
    const body = isInPieces(encoded) ? encoded : encoded.body
    const call = this.#call({ config, signal, clock, path, body, headers: { accept, ...headers } })
    return { call, context: { target, request, warnings, unwrap } }
  }

  #encodeRequest(request: LLMRequest, mode: RequestMode): EncodedRequest {
    const { provider } = this
    return written(() => this.#wire.encodeRequest(request, this.#target, mode), {
      provider,
      modality: 'llm',
    })
  }

  #reader(
    answer: VendorAnswer,
    call: VendorCall,
    context: DecodeContext,
    isStreaming: boolean,
  ): AnswerReader<Batch> | Promise<AnswerReader<Batch>> {
    const wire = this.#wire
    const isBackground = this.#background?.isRequested(context.request.params) === true
    tellHeaders(context.request, answer)
    return chooseReader(answer, {
      isStreaming,
      framing: wire.framing,
      whole: () => new JsonReader(answer, call, (json) => wire.decodeResponse(json, context)),
      frames: () =>
        new FrameReader(answer, {
          framing: wire.framing,
          createFrames: wire.createFrames,
          decoder: wire.createDecoder(context),
          context: contextOf(call),
          // These events have no content yet, so the attempt can still be repeated after them. A repetition of an
          // answer in the background would be a second one.
          isHeld: ({ type, delta }) =>
            !isBackground &&
            (type === 'message_start' ||
              (type === 'content_block_start' && delta.block === 'text')),
          isLast: (event) => event.type === 'message_stop',
        }),
    })
  }
}

type Batch = readonly StreamEvent[]

function tellHeaders({ onHeaders }: LLMRequest, { headers }: VendorAnswer): void {
  if (!onHeaders) return
  const all: Record<string, string> = {}
  headers.forEach((value, name) => {
    all[name] = value
  })
  onHeaders(all)
}

const streamTypes = {
  sse: 'text/event-stream',
  ndjson: 'application/x-ndjson',
  binary: 'application/vnd.amazon.eventstream',
} as const
