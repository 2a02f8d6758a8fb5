import type { LLMCapabilities } from '../provider.ts'

/**
 * What is known about models, as data of your own: by `provider/model`, e.g. `openai/gpt-5`. It
 * informs (cost, choice of a model) and never changes what is sent (UPP §2.1).
 */
export type ModelCatalog = Readonly<Record<string, ModelInfo>>

export interface ModelInfo {
  readonly limits?: {
    readonly contextTokens?: number
    readonly outputTokens?: number
  }
  /** Of this model, where it can less than its vendor's API. */
  readonly capabilities?: Partial<LLMCapabilities>
  readonly prices?: ModelPrices
}

/** In US dollars for a million tokens, unless a field says otherwise. */
export interface ModelPrices {
  /** Input that is neither read from nor written to a cache. */
  readonly input: number
  /** Output, reasoning included. */
  readonly output: number
  /** Default: as `input`. */
  readonly cacheRead?: number
  /** Default: as `input`. */
  readonly cacheWrite?: number
  /** Where the price depends on the time to live, e.g. `{ '1h': 6 }`. */
  readonly cacheWriteByTtl?: Readonly<Record<string, number>>
  /** Where tokens of a modality cost otherwise, e.g. `{ inputAudio: 10, outputImage: 30 }`. */
  readonly byModality?: Readonly<Record<string, number>>
  /** Dollars for one use of a vendor-side tool, e.g. `{ web_search_requests: 0.01 }`. */
  readonly perUse?: Readonly<Record<string, number>>
  /** Dollars for one image, where images are not priced by tokens. */
  readonly perImage?: number
  /** What holds instead when the input is longer than this. */
  readonly longContext?: {
    readonly aboveInputTokens: number
    readonly prices: Omit<ModelPrices, 'longContext'>
  }
}

/** `gpt-5-2025-08-07`, `claude-sonnet-4-5-20250929`, `gemini-2.5-pro-latest`: one model under many names. */
const version = /[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$/

/** The entry of a model, also when the vendor answered under a name with a date. */
export function findModel(
  catalog: ModelCatalog,
  provider: string,
  modelId: string,
): ModelInfo | undefined {
  for (const id of [modelId, modelId.replace(version, '')]) {
    const key = `${provider}/${id}`
    if (Object.hasOwn(catalog, key)) return catalog[key]
  }
  return undefined
}
