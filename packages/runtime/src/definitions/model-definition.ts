import type { ModelReference, Params, ProviderConfig } from '@skein/ai'
import type { Ref } from './agent-definition.ts'

/** A model, its fallbacks and its prices. */
export interface ModelDefinition {
  readonly kind: 'model'
  readonly name: string
  readonly model: ModelReference
  readonly config?: ProviderConfig
  /** Models that are tried in this order when the model fails. */
  readonly fallbacks?: readonly (Ref<ModelDefinition> | ModelReference)[]
  /** US dollars per million tokens. */
  readonly inputPrice?: number
  readonly outputPrice?: number
  readonly cachedPrice?: number
  readonly capabilities?: {
    readonly maxContextTokens?: number
    readonly maxOutputTokens?: number
    /** Whether the model takes images and PDFs. Default: as its provider and the catalog say. */
    readonly supportsImages?: boolean
    /** Whether the model takes audio. Default: as its provider and the catalog say. */
    readonly supportsAudio?: boolean
  }
  /** Options that are sent to the vendor unchanged. */
  readonly providerOptions?: Params
}
