import { deepFreeze } from '@skein/base'
import type { MessageStartEvent, StreamEvent } from '../contract/event.ts'
import type { ImageResult } from '../image.ts'
import type { Middleware, MiddlewareContext } from '../contract/middleware.ts'
import type { TokenUsage, Turn } from '../contract/turn.ts'
import type { LLMCapabilities } from '../contract/provider.ts'

/** Settings of `costMiddleware`. */
export interface CostOptions {
  /** The prices, by `provider/model`. */
  readonly catalog: ModelCatalog
}

/** The middleware that computes costs. */
export interface CostMiddleware extends Middleware {
  /**
   * Returns whether the catalog has prices of a model; undefined if it has no model of that vendor, e.g. because the
   * name is that of a fallback.
   */
  isPriced(provider: string, modelId: string): boolean | undefined
}

/**
 * Sets `costUsd` on the usage of every inference and so of the turn; for images, on the usage of the result.
 * A cost reported by the vendor is kept. A model without prices gets no cost and the warning `price_unknown`.
 * The prices are those of the model that answered, so the middleware also works with a fallback.
 */
export function costMiddleware({ catalog }: CostOptions): CostMiddleware {
  return {
    name: 'cost',
    isPriced(provider, modelId) {
      if (findModel(catalog, provider, modelId)?.prices) return true
      return Object.keys(catalog).some((name) => name.startsWith(`${provider}/`))
        ? false
        : undefined
    },
    async *wrapInference(request, next, context) {
      let start: MessageStartEvent['delta'] = {}
      for await (const events of next(request)) {
        for (const event of events) if (event.type === 'message_start') start = event.delta
        const ends = events.some(({ type }) => type === 'message_stop')
        yield ends ? events.map((event) => withCost(event, pricesFor(start, context))) : events
      }
    },
    onResponse(context) {
      const { response, modality } = context
      if (modality === 'llm') context.response = withExactSum(response as Turn)
      if (modality === 'image') {
        const { prices } = findModel(catalog, context.provider, context.modelId) ?? {}
        context.response = withImageCost(response as ImageResult, prices)
      }
    },
  }

  /** Returns the prices of the model that answered, by the name in its answer or by the requested name. */
  function pricesFor(
    { provider, model }: MessageStartEvent['delta'],
    context: MiddlewareContext,
  ): ModelPrices | null | undefined {
    const by = provider ?? context.provider
    const listedModel = model === undefined ? undefined : findModel(catalog, by, model)
    return (listedModel ?? findModel(catalog, by, context.modelId))?.prices
  }
}

function withCost(event: StreamEvent, prices: ModelPrices | null | undefined): StreamEvent {
  if (event.type !== 'message_stop' || event.delta.usage.costUsd !== undefined) return event
  const { usage, warnings = [] } = event.delta
  if (prices) {
    const usageWithCost: TokenUsage = Object.freeze({ ...usage, costUsd: tokenCost(usage, prices) })
    return { ...event, delta: { ...event.delta, usage: usageWithCost } }
  }
  if (usage.totalTokens === 0) return event // nothing was spent, e.g. for an answer from a cache
  const unknown = { code: 'price_unknown', message: 'The catalog has no prices of this model.' }
  return { ...event, delta: { ...event.delta, warnings: [...warnings, unknown] } }
}

/**
 * Sets the cost of the turn to the exact sum of its inferences, because sums of floating-point numbers are
 * imprecise (0.1 + 0.2).
 */
function withExactSum(turn: Turn): Turn {
  const costs = turn.usageByCycle.flatMap(({ costUsd }) => costUsd ?? [])
  const costUsd = costs.reduce((sum, usd) => sum + Math.round(usd * PICO), 0) / PICO
  if (costs.length === 0 || turn.usage.costUsd === costUsd) return turn
  return deepFreeze({ ...turn, usage: { ...turn.usage, costUsd } })
}

function withImageCost(result: ImageResult, prices: ModelPrices | null | undefined): ImageResult {
  const { usage = {}, images } = result
  if (!prices || usage.costUsd !== undefined) return result
  const { inputTokens = 0, outputTokens = 0, imagesGenerated = images.length } = usage
  // Images are priced by token, by image, or both.
  const pico =
    inputTokens * perToken(prices.input) +
    outputTokens * perToken(prices.output) +
    imagesGenerated * Math.round((prices.perImage ?? 0) * PICO)
  return { ...result, usage: { ...usage, costUsd: pico / PICO } }
}

/**
 * Money is added up in whole picodollars. A price per million tokens with up to six decimals is a whole
 * number of picodollars per token, so sums are exact up to 9,007 dollars.
 */
const PICO = 1e12
const perToken = (usdPerMillion: number): number => Math.round((usdPerMillion * PICO) / 1e6)

/** Returns the cost of one inference in dollars. */
export function tokenCost(usage: TokenUsage, all: ModelPrices): number {
  const { longContext } = all
  const isLong = longContext && usage.inputTokens > longContext.aboveInputTokens
  const prices = isLong ? longContext.prices : all
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage
  const modalities = byModality(usage, prices)
  const plainInput = inputTokens - cacheReadTokens - cacheWriteTokens - modalities.inputTokens
  const serverTools = Object.entries(usage.serverToolUse ?? {}).reduce(
    (sum, [name, count]) => sum + count * Math.round((prices.perUse?.[name] ?? 0) * PICO),
    0,
  )
  const pico =
    Math.max(0, plainInput) * perToken(prices.input) +
    Math.max(0, outputTokens - modalities.outputTokens) * perToken(prices.output) +
    cacheReadTokens * perToken(prices.cacheRead ?? prices.input) +
    cacheWrites(usage, prices) +
    modalities.pico +
    serverTools
  return pico / PICO
}

function cacheWrites(
  { cacheWriteTokens, cacheWriteTokensByTtl = {} }: TokenUsage,
  { input, cacheWrite = input, cacheWriteByTtl = {} }: ModelPrices,
): number {
  let pico = 0
  let rest = cacheWriteTokens
  for (const [ttl, tokens] of Object.entries(cacheWriteTokensByTtl)) {
    const price = cacheWriteByTtl[ttl]
    if (price === undefined) continue
    pico += tokens * perToken(price)
    rest -= tokens
  }
  return pico + Math.max(0, rest) * perToken(cacheWrite)
}

/**
 * Returns the cost of the tokens that have a price for their modality,
 * and how many input and output tokens they are.
 */
function byModality(
  { tokensByModality = {} }: TokenUsage,
  { byModality: prices = {} }: ModelPrices,
): { pico: number; inputTokens: number; outputTokens: number } {
  const part = { pico: 0, inputTokens: 0, outputTokens: 0 }
  for (const [name, tokens] of Object.entries(tokensByModality)) {
    const price = prices[name]
    if (price === undefined) continue
    part.pico += tokens * perToken(price)
    part[name.startsWith('output') ? 'outputTokens' : 'inputTokens'] += tokens
  }
  return part
}

/**
 * The application's data about models, by `provider/model`, e.g. `openai/gpt-5`. It is used for costs and for
 * choosing a model, and never changes the request (UPP §2.1).
 */
export type ModelCatalog = Readonly<Record<string, ModelInfo>>

/** The catalog entry of a model. Null, as in `@skein/ai/catalog`, means that the value is not known. */
export interface ModelInfo {
  readonly limits?: {
    readonly contextTokens?: number | null
    readonly outputTokens?: number | null
  }
  /** The capabilities of this model, if it supports less than its vendor's API. */
  readonly capabilities?: Partial<LLMCapabilities>
  readonly prices?: ModelPrices | null
}

/** Prices in US dollars per million tokens, unless a field says otherwise. */
export interface ModelPrices {
  /** Input that is neither read from nor written to a cache. */
  readonly input: number
  /** Output, reasoning included. */
  readonly output: number
  /** Price of input read from a cache. Default: the price of `input`. */
  readonly cacheRead?: number
  /** Price of input written to a cache. Default: the price of `input`. */
  readonly cacheWrite?: number
  /** Prices of cache writes that depend on the time to live, e.g. `{ '1h': 6 }`. */
  readonly cacheWriteByTtl?: Readonly<Record<string, number>>
  /** Different prices for tokens of a modality, e.g. `{ inputAudio: 10, outputImage: 30 }`. */
  readonly byModality?: Readonly<Record<string, number>>
  /** Dollars for one use of a vendor-side tool, e.g. `{ web_search_requests: 0.01 }`. */
  readonly perUse?: Readonly<Record<string, number>>
  /** Dollars for one image, if images are not priced by tokens. */
  readonly perImage?: number
  /** The prices that apply instead when the input is longer than `aboveInputTokens`. */
  readonly longContext?: {
    readonly aboveInputTokens: number
    readonly prices: Omit<ModelPrices, 'longContext'>
  }
}

/**
 * Matches the version suffix of a model name: `gpt-5-2025-08-07`, `claude-sonnet-4-5-20250929`,
 * `gemini-2.5-pro-latest`.
 */
const version = /[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|latest)$/

/** Returns the entry of a model, also if its name has a version suffix. */
export function findModel<Info extends ModelInfo>(
  catalog: Readonly<Record<string, Info>>,
  provider: string,
  modelId: string,
): Info | undefined {
  for (const id of [modelId, modelId.replace(version, '')]) {
    const key = `${provider}/${id}`
    if (Object.hasOwn(catalog, key)) return catalog[key]
  }
  return undefined
}
