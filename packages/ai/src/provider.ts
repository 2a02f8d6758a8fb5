import type { Clock, IdSource, JsonSchema } from '@skein/base'
import type { ProviderConfig } from './config.ts'
import type { EmbeddingHandler } from './embedding.ts'
import type { StreamEvent } from './event.ts'
import type { ImageHandler } from './image.ts'
import type { Message } from './message.ts'
import type { Tool } from './tool.ts'
import type { WireName } from './wires/wire.ts'

/** Model parameters go to the vendor unchanged (UPP §2.1). */
export type Params = Readonly<Record<string, unknown>>

/** A model of a provider, for any modality function. */
export interface ModelReference {
  readonly modelId: string
  readonly provider: Provider
  /** What the factory was given beside the id, e.g. `{ api: 'chat' }`. */
  readonly options?: Params
}

/** A vendor: call it with a model id to get a reference. */
export interface Provider {
  (modelId: string, options?: Params): ModelReference
  /** Also the namespace of its metadata. (A function's `name`, redefined.) */
  readonly name: string
  readonly handlers: ProviderHandlers
}

/** Providers may implement any subset of the modalities (UPP §16.1). */
export interface ProviderHandlers {
  readonly llm?: LLMHandler
  readonly embedding?: EmbeddingHandler
  readonly image?: ImageHandler
}

/** What the vendor's API can do, not one model (UPP §5.4). Frozen. */
export interface LLMCapabilities {
  readonly streaming: boolean
  readonly tools: boolean
  readonly structuredOutput: boolean
  readonly imageInput: boolean
  readonly documentInput: boolean
  readonly videoInput: boolean
  readonly audioInput: boolean
}

/** The language models of a provider. */
export interface LLMHandler {
  readonly capabilities: LLMCapabilities
  bind(reference: ModelReference): BoundLLMModel
}

/**
 * One model of one vendor. It does single request/response cycles; the tool loop is the core's
 * (UPP §5.5). Both methods give the events of one message, and fail with a `UPPError`.
 */
export interface BoundLLMModel {
  readonly modelId: string
  readonly provider: string
  readonly capabilities: LLMCapabilities
  /** The format it is spoken to in, where it is one of ours: tells which parameters it knows. */
  readonly wire?: WireName
  /** The vendor's waiting call, decoded into the events that `stream` would have given. */
  complete(request: LLMRequest): Promise<readonly StreamEvent[]>
  /** One batch of events per network read. Returning early closes the connection. */
  stream(request: LLMRequest): AsyncIterable<readonly StreamEvent[]>
}

/** What the core hands to a provider for one inference. */
export interface LLMRequest {
  readonly messages: readonly Message[]
  readonly system?: string
  readonly params: Params
  readonly tools: readonly Tool[]
  readonly structure?: JsonSchema
  readonly config: ProviderConfig
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly ids: IdSource
}

/** What `createProvider` makes a provider of. */
export interface ProviderDefinition extends ProviderHandlers {
  readonly name: string
}

/** Makes a provider from its handlers. */
export function createProvider(definition: ProviderDefinition): Provider {
  const { name, llm, embedding, image } = definition
  const handlers: ProviderHandlers = Object.freeze({
    ...(llm && { llm }),
    ...(embedding && { embedding }),
    ...(image && { image }),
  })
  const factory = (modelId: string, options?: Params): ModelReference =>
    Object.freeze({ modelId, provider, ...(options && { options: Object.freeze({ ...options }) }) })
  const provider: Provider = Object.defineProperties(factory, {
    name: { value: name, enumerable: true },
    handlers: { value: handlers, enumerable: true },
  }) as Provider // defineProperties does not carry the added property types
  return Object.freeze(provider)
}
