import type { JsonObject } from '@skein/base'
import type { ProviderConfig } from './config.ts'
import type { ImageBlock, TextBlock } from './content.ts'
import type { ModelReference, Params } from './provider.ts'

export type EmbeddingInput = string | TextBlock | ImageBlock

export interface Embedding {
  readonly vector: readonly number[]
  readonly dimensions: number
  /** Position in the input. */
  readonly index: number
  readonly metadata?: Readonly<Record<string, JsonObject>>
}

export interface EmbeddingUsage {
  readonly totalTokens: number
}

export interface EmbeddingResult {
  /** In input order. */
  readonly embeddings: readonly Embedding[]
  readonly usage: EmbeddingUsage
  readonly metadata?: Readonly<Record<string, JsonObject>>
}

export interface EmbeddingRequest {
  readonly inputs: readonly EmbeddingInput[]
  readonly params: Params
  readonly config: ProviderConfig
  readonly signal: AbortSignal
  /** A hint some vendors map to their own parameter. */
  readonly inputType?: 'document' | 'query'
}

export interface EmbeddingHandler {
  /** Most inputs the vendor takes in one request; larger inputs are batched. */
  readonly maxBatchSize: number
  readonly imageInput: boolean
  bind(reference: ModelReference): BoundEmbeddingModel
}

export interface BoundEmbeddingModel {
  readonly modelId: string
  readonly provider: string
  /** One vendor request. */
  embed(request: EmbeddingRequest): Promise<EmbeddingResult>
}
