import type { ImageUsage } from '../image.ts'
import type { ModelPrices } from './model-catalog.ts'
import type { TokenUsage } from '../usage.ts'

/**
 * Money is counted in whole picodollars: a price for a million tokens with six decimals is a whole
 * number of them for one token, so sums are exact, up to 9,007 dollars.
 */
const PICO = 1e12
const perToken = (usdPerMillion: number): number => Math.round((usdPerMillion * PICO) / 1e6)

export function addUsd(amounts: readonly number[]): number {
  return amounts.reduce((sum, usd) => sum + Math.round(usd * PICO), 0) / PICO
}

/** What one inference cost, in dollars. */
export function tokenCost(usage: TokenUsage, all: ModelPrices): number {
  const { longContext } = all
  const isLong = longContext && usage.inputTokens > longContext.aboveInputTokens
  const prices = isLong ? longContext.prices : all
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens } = usage
  const modalities = byModality(usage, prices)
  const plainInput = inputTokens - cacheReadTokens - cacheWriteTokens - modalities.inputTokens
  const pico =
    Math.max(0, plainInput) * perToken(prices.input) +
    Math.max(0, outputTokens - modalities.outputTokens) * perToken(prices.output) +
    cacheReadTokens * perToken(prices.cacheRead ?? prices.input) +
    cacheWrites(usage, prices) +
    modalities.pico +
    uses(usage, prices)
  return pico / PICO
}

/** Prices of images by token, by piece, or both. */
export function imageCost(usage: ImageUsage, prices: ModelPrices): number {
  const { inputTokens = 0, outputTokens = 0, imagesGenerated = 0 } = usage
  const pico =
    inputTokens * perToken(prices.input) +
    outputTokens * perToken(prices.output) +
    imagesGenerated * Math.round((prices.perImage ?? 0) * PICO)
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

function uses({ serverToolUse = {} }: TokenUsage, { perUse = {} }: ModelPrices): number {
  return Object.entries(serverToolUse).reduce(
    (sum, [name, count]) => sum + count * Math.round((perUse[name] ?? 0) * PICO),
    0,
  )
}
