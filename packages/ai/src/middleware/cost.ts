import { deepFreeze } from '@skein/base'
import type { MessageStartEvent, StreamEvent } from '../contract/event.ts'
import type { ImageResult } from '../image.ts'
import type { Middleware, MiddlewareContext } from '../contract/middleware.ts'
import type { TokenUsage, Turn } from '../contract/turn.ts'
import type { LLMCapabilities } from '../contract/provider.ts'

/** Settings of `costMiddleware`. */
export interface CostOptions {
  /** Where prices are found, by `provider/model`. */
  readonly catalog: ModelCatalog
}

/**
 * Sets `costUsd` on the usage of every inference, and so on that of the turn; for images on the
 * usage of the result. What the vendor says about its cost wins. A model without prices gets no
 * cost and the warning `price_unknown`. Prices are those of the model that answered, so it can
 * stand before a fallback.
 */
export function costMiddleware({ catalog }: CostOptions): Middleware {
  return {
    name: 'cost',
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

  /** Of the model that answered, by the name it gave or by the one it was asked for. */
  function pricesFor(
    { provider, model }: MessageStartEvent['delta'],
    context: MiddlewareContext,
  ): ModelPrices | undefined {
    const by = provider ?? context.provider
    const told = model === undefined ? undefined : findModel(catalog, by, model)
    return (told ?? findModel(catalog, by, context.modelId))?.prices
  }
}

function withCost(event: StreamEvent, prices: ModelPrices | undefined): StreamEvent {
  if (event.type !== 'message_stop' || event.delta.usage.costUsd !== undefined) return event
  const { usage, warnings = [] } = event.delta
  if (prices) {
    const costed: TokenUsage = Object.freeze({ ...usage, costUsd: tokenCost(usage, prices) })
    return { ...event, delta: { ...event.delta, usage: costed } }
  }
  if (usage.totalTokens === 0) return event // nothing was spent, e.g. an answer from a cache
  const unknown = { code: 'price_unknown', message: 'The catalog has no prices of this model.' }
  return { ...event, delta: { ...event.delta, warnings: [...warnings, unknown] } }
}

/** Floating sums drift (0.1 + 0.2); a bill should not. */
function withExactSum(turn: Turn): Turn {
  const costs = turn.usageByCycle.flatMap(({ costUsd }) => costUsd ?? [])
  const costUsd = costs.reduce((sum, usd) => sum + Math.round(usd * PICO), 0) / PICO
  if (costs.length === 0 || turn.usage.costUsd === costUsd) return turn
  return deepFreeze({ ...turn, usage: { ...turn.usage, costUsd } })
}

function withImageCost(result: ImageResult, prices: ModelPrices | undefined): ImageResult {
  const { usage = {}, images } = result
  if (!prices || usage.costUsd !== undefined) return result
  const { inputTokens = 0, outputTokens = 0, imagesGenerated = images.length } = usage
  // Images are priced by token, by piece, or both.
  const pico =
    inputTokens * perToken(prices.input) +
    outputTokens * perToken(prices.output) +
    imagesGenerated * Math.round((prices.perImage ?? 0) * PICO)
  return { ...result, usage: { ...usage, costUsd: pico / PICO } }
}

/**
 * Money is counted in whole picodollars: a price for a million tokens with six decimals is a whole
 * number of them for one token, so sums are exact, up to 9,007 dollars.
 */
const PICO = 1e12
const perToken = (usdPerMillion: number): number => Math.round((usdPerMillion * PICO) / 1e6)

/** What one inference cost, in dollars. */
function tokenCost(usage: TokenUsage, all: ModelPrices): number {
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

/** The part that has a price of its own, and how many tokens of input and output it is. */
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
 * What is known about models, as data of your own: by `provider/model`, e.g. `openai/gpt-5`. It
 * informs (cost, choice of a model) and never changes what is sent (UPP §2.1).
 */
export type ModelCatalog = Readonly<Record<string, ModelInfo>>

/** What the catalogue knows about a model. */
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
