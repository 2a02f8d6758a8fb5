import type { JsonObject } from '@skein/base'
import type { ProviderConfig } from './config.ts'
import type { ImageBlock } from './content.ts'
import type { Image } from './media/image.ts'
import type { ModelReference, Params } from './provider.ts'

export interface ImageCapabilities {
  readonly generate: boolean
  readonly streaming: boolean
  readonly edit: boolean
  readonly maxImages?: number
}

export interface GeneratedImage {
  readonly image: Image
  readonly metadata?: Readonly<Record<string, JsonObject>>
}

export interface ImageUsage {
  readonly imagesGenerated?: number
  readonly inputTokens?: number
  readonly outputTokens?: number
  readonly totalTokens?: number
  readonly costUsd?: number
}

export interface ImageResult {
  readonly images: readonly GeneratedImage[]
  readonly usage?: ImageUsage
  readonly metadata?: Readonly<Record<string, JsonObject>>
}

export interface ImageRequest {
  readonly prompt: string
  /** With `edit`: one or more images, and an optional mask. */
  readonly images?: readonly ImageBlock[]
  readonly mask?: ImageBlock
  readonly params: Params
  readonly config: ProviderConfig
  readonly signal: AbortSignal
}

/** `preview` is replaced by what follows; `image` is final. */
export type ImageStreamEvent =
  | { readonly type: 'preview'; readonly index: number; readonly image: Image }
  | { readonly type: 'image'; readonly index: number; readonly image: GeneratedImage }
  | {
      readonly type: 'end'
      readonly usage?: ImageUsage
      readonly metadata?: Readonly<Record<string, JsonObject>>
    }

export interface ImageHandler {
  bind(reference: ModelReference): BoundImageModel
}

export interface BoundImageModel {
  readonly modelId: string
  readonly provider: string
  readonly capabilities: ImageCapabilities
  generate(request: ImageRequest): Promise<ImageResult>
  edit?(request: ImageRequest): Promise<ImageResult>
  stream?(request: ImageRequest): AsyncIterable<ImageStreamEvent>
}
