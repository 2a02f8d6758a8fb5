import type { Clock, IdSource, InputLimits, JsonObject, JsonSchema, JsonValue } from '@skein/base'
import type { EmbeddingHandler } from '../embedding.ts'
import type { ImageHandler } from '../image.ts'
import type { UserContent } from './content.ts'
import type { UPPError } from './error.ts'
import type { StreamEvent } from './event.ts'
import type { Message } from './message.ts'
import type { Tool } from './tool.ts'

/** Model parameters, sent to the vendor unchanged (UPP §2.1). */
export type Params = Readonly<Record<string, unknown>>

/**
 * Settings that most vendors have under names of their own; each is translated for the vendor of the model.
 * Only settings with a value are sent, and an entry of `params` with the same meaning is used instead. If the
 * vendor has no such setting, the turn gets a warning.
 */
export interface Settings {
  readonly temperature?: number
  readonly maxOutputTokens?: number
  readonly topP?: number
  readonly stop?: string | readonly string[]
  readonly seed?: number
  /** The model picks each token among this many of the likeliest ones. */
  readonly topK?: number
  readonly toolChoice?: ToolChoice
  /** Whether one answer may call several tools. */
  readonly parallelToolCalls?: boolean
  /** How much the model thinks before it answers; `budget` is in tokens. */
  readonly reasoning?: 'off' | 'low' | 'medium' | 'high' | { readonly budget: number }
}

/** Whether the model may, must not or must call a tool, or must call the named one. */
export type ToolChoice = 'auto' | 'none' | 'required' | { readonly tool: string }

/**
 * A model of a provider; `llm`, `embedding` and `image` accept it. `Known` is the type of `params`: the
 * parameters that the vendor documents. A `ModelReference` without `Known` accepts any parameters.
 */
export interface ModelReference<Known = unknown> {
  readonly modelId: string
  readonly provider: Provider
  /** The options passed to the provider together with the id, e.g. `{ api: 'chat' }`. */
  readonly options?: Params
  /** Never set at run time: it only carries the type `Known`. It is readonly, so a union of models is a model too. */
  readonly '~params'?: Known
}

/**
 * What `params` may be for a model: the parameters that its vendor documents; for a union of two vendors'
 * models, those of either vendor; for a model of an unknown vendor, anything. To send parameters that the
 * types lack, declare them as `Params`; like all others, they are sent unchanged (UPP §2.1).
 *
 *     const params: Params = { brand_new: true }
 *     llm({ model: openai('gpt-6'), params })
 */
export type ParamsOf<Model extends ModelReference> =
  Model extends ModelReference<infer Known> ? (unknown extends Known ? Params : Known) : never

/**
 * A vendor: call it with a model id to get a reference. `Options` is the type of the second argument; without
 * it, a provider can only be called with an id.
 */
export interface Provider<Options = never> {
  (modelId: string, options?: Options): ModelReference
  /** The provider's name, also the key of its metadata. Replaces the `name` that every function has. */
  readonly name: string
  readonly handlers: ProviderHandlers
}

/** The handlers of a provider, one per modality; any of them may be missing (UPP §16.1). */
export interface ProviderHandlers {
  readonly llm?: LLMHandler
  readonly embedding?: EmbeddingHandler
  readonly image?: ImageHandler
}

/** The capabilities of the vendor's API, not of one model (UPP §5.4). Frozen. */
export interface LLMCapabilities {
  readonly streaming: boolean
  readonly tools: boolean
  readonly structuredOutput: boolean
  readonly imageInput: boolean
  readonly documentInput: boolean
  readonly videoInput: boolean
  readonly audioInput: boolean
}

/** The capabilities of a model that accepts everything, or of which nothing else is known. */
export const allCapabilities: LLMCapabilities = {
  streaming: true,
  tools: true,
  structuredOutput: true,
  imageInput: true,
  documentInput: true,
  videoInput: true,
  audioInput: true,
}

/** The language models of a provider. */
export interface LLMHandler {
  readonly capabilities: LLMCapabilities
  bind(reference: ModelReference): BoundLLMModel
}

/**
 * One model of one vendor. It runs single requests; `llm()` runs the tool loop (UPP §5.5). `complete` and
 * `stream` return the events of one message, and fail with a `UPPError`.
 */
export interface BoundLLMModel {
  readonly modelId: string
  readonly provider: string
  readonly capabilities: LLMCapabilities
  /**
   * The wire format of the model, if it is one of this package; the format decides which parameters the model
   * accepts.
   */
  readonly wire?: WireName
  /**
   * Converts the parsed data of a structured answer to data that the schema describes, for formats that
   * answer in another form, e.g. with null for a property that is absent. Without it the data is used as it
   * is. With `isPartial` the data may be the beginning of an answer.
   */
  readData?(structure: JsonSchema, data: unknown, isPartial?: boolean): unknown
  /**
   * Returns why this model cannot be sent a block although its capabilities name the kind, e.g. a file that was
   * uploaded to another vendor; undefined if it can. Without this method only the capabilities decide.
   */
  refuse?(block: UserContent): UPPError | undefined
  /**
   * Writes settings under this model's own names, and says which of them it does not have. With `messages`, also which
   * of them this conversation excludes.
   */
  writeSettings?(settings: Settings, messages?: readonly Message[]): ModelSettings
  /** The region in which the vendor processes requests, e.g. `eu-central-1`; undefined if it is not known. */
  readonly region?: string
  /**
   * What else decides an answer besides the request: the address and the API of the model, and the members of a
   * combination with their params. JSON without credentials; a cache makes it part of its key.
   */
  readonly identity?: JsonObject
  /** Returns the path and body that a request would be sent with, e.g. to ask the vendor how many tokens it has. */
  encode?(request: LLMRequest): { readonly path: string; readonly body: string }
  /** Sends a request to another endpoint of the vendor and returns its JSON. */
  send?(request: EndpointRequest): Promise<JsonValue>
  /** Sends a request without streaming and returns the same events that `stream` would have yielded. */
  complete(request: LLMRequest): Promise<readonly StreamEvent[]>
  /** Yields the events in batches as they arrive. Leaving the loop early closes the connection. */
  stream(request: LLMRequest): AsyncIterable<readonly StreamEvent[]>
}

/** Settings as one model takes them. */
export interface ModelSettings {
  /** The vendor's parameters; undefined if another model writes them later, as a member of a combination does. */
  readonly params?: Params
  /** The settings that the model does not have, or not with this value. */
  readonly dropped: readonly (keyof Settings)[]
}

/** A request to an endpoint of a vendor, with the same keys, retries and limits as an inference. */
export interface EndpointRequest extends Pick<LLMRequest, 'config' | 'signal' | 'clock'> {
  /** The path below the base URL, with its query. */
  readonly path: string
  readonly method?: 'GET' | 'POST'
  readonly body?: JsonObject
}

/** The request of one inference, as a provider gets it. */
export interface LLMRequest {
  readonly messages: readonly Message[]
  readonly system?: string
  readonly params: Params
  /** Settings under this package's own names, e.g. `maxOutputTokens`; present only if one is set. */
  readonly settings?: Settings
  /** Changes for models of one vendor or format; a fallback or route applies them to the members they name. */
  readonly scopes?: readonly RequestScope[]
  readonly tools: readonly Tool[]
  readonly structure?: JsonSchema
  readonly config: ProviderConfig
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly ids: IdSource
  /** Called with the headers of the response that the answer is read from. */
  readonly onHeaders?: (headers: Readonly<Record<string, string>>) => void
}

/**
 * A change of a request for the models of one vendor, or of one vendor format: what a client wrote in that
 * format, e.g. the parameters of a client of the gateway. A combination of models of several vendors applies it
 * to the members that it names, so that no other vendor sees it.
 */
export interface RequestScope {
  /** The vendor's provider name. Without it, every vendor with the format. */
  readonly provider?: string
  /** The vendor format. Without it, every format of the vendor. */
  readonly wire?: WireName
  /** Parameters under the vendor's own names. */
  readonly params?: Params
  readonly headers?: Readonly<Record<string, string>>
  /** Replaces the system prompt, which `params` then hold in the vendor's own form; null for none. */
  readonly system?: string | null
  /** Replaces the shared settings, because `params` say the same in the vendor's own words; null for none. */
  readonly settings?: Settings | null
}

/** The input of `createProvider`. */
export interface ProviderDefinition extends ProviderHandlers {
  readonly name: string
}

/** Makes a provider from its handlers. */
export function createProvider(definition: ProviderDefinition): Provider<Params> {
  const { name, llm, embedding, image } = definition
  const entries = Object.entries({ llm, embedding, image }).filter(([, handler]) => handler)
  // Only the given handlers are included, so that the keys of `handlers` are the provider's modalities.
  const handlers: ProviderHandlers = Object.freeze(Object.fromEntries(entries))
  const factory = (modelId: string, options?: Params): ModelReference =>
    Object.freeze({ modelId, provider, options: options && Object.freeze({ ...options }) })
  const provider: Provider<Params> = Object.defineProperties(factory, {
    name: { value: name, enumerable: true },
    handlers: { value: handlers, enumerable: true },
  }) as Provider<Params> // the type of `defineProperties` does not include the added properties
  return Object.freeze(provider)
}

/**
 * Connection settings, the same for every modality and vendor (UPP §4.1), with the limits for what the vendor
 * sends. An answer over a limit fails with `INVALID_RESPONSE` and is not retried.
 */
export interface ProviderConfig extends Partial<InputLimits> {
  /** Default: the vendor's environment variable. The key is read again for every attempt. */
  readonly apiKey?: string | (() => string | Promise<string>) | KeyStrategy
  /** Replaces the vendor's base address including its version, e.g. `https://api.openai.com/v1`. */
  readonly baseUrl?: string
  /** Longest duration in milliseconds of one attempt, body included. Default: none. */
  readonly timeout?: number
  /** Limits for the phases of one attempt, each in milliseconds. */
  readonly timeouts?: Timeouts
  readonly fetch?: Fetch
  readonly retryStrategy?: RetryStrategy
  /**
   * Added to the vendor's headers; a header of the same name, ignoring case, is replaced. With null the
   * vendor's header is removed; undefined changes nothing.
   */
  readonly headers?: Readonly<Record<string, string | number | null | undefined>>
}

/** Limits of the phases of one attempt, in milliseconds. */
export interface Timeouts {
  /**
   * Until a connection to the host is made and verified, through a proxy if any. Default 10 seconds. Only for
   * the client of Node; a `fetch` has its own limit.
   */
  readonly connectMs?: number
  /** Until the response headers. Default 10 minutes. */
  readonly headersMs?: number
  /** From the headers to the first byte of the body. Default: the value of `idleMs`. */
  readonly firstByteMs?: number
  /** Between two reads of the body. Default 5 minutes. */
  readonly idleMs?: number
  /** The whole attempt; the same as `timeout`. */
  readonly totalMs?: number
}

/** The part of `fetch` that is used. */
export type Fetch = (input: string, init: RequestInit) => Promise<Response>

/** Chooses the key of each attempt (UPP §4.2). */
export interface KeyStrategy {
  getKey(): string | Promise<string>
  /** Called with the key of a failed attempt, so that the strategy can avoid that key for a while. */
  onKeyError?(key: string, error: UPPError): void
}

/** Decides whether and when a failed attempt is repeated (UPP §4.3). */
export interface RetryStrategy {
  /** Returns the delay in milliseconds before the next attempt, or null to give up. `attempt` starts at 1. */
  onRetry(error: UPPError, attempt: number): number | null | Promise<number | null>
  /** Returns a delay in milliseconds that is waited before each request. */
  beforeRequest?(): number | Promise<number>
  /** Called after a successful request. */
  reset?(): void
}

/** The wire formats by name. */
export type WireName =
  | 'openai-chat'
  | 'openai-responses'
  | 'anthropic-messages'
  | 'google-generate'
  | 'google-interactions'
  | 'bedrock-converse'
  | 'ollama-chat'
