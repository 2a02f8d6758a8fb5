import type { TokenUsage } from '@skein/ai'
import type { ModelDefinition } from '../definitions/types.ts'

const PER = 1_000_000

type Prices = Pick<ModelDefinition, 'inputPrice' | 'outputPrice' | 'cachedPrice'>

/** What a usage cost by the prices of its model, in US dollars; undefined when they are not known. */
export function priceOf(model: Prices, usage: TokenUsage): number | undefined {
  const { inputPrice, outputPrice, cachedPrice = inputPrice } = model
  if (inputPrice === undefined || outputPrice === undefined || cachedPrice === undefined) {
    return undefined
  }
  // `inputTokens` includes what was read from a cache.
  const cached = Math.min(usage.cacheReadTokens, usage.inputTokens)
  const fresh = usage.inputTokens - cached
  return (fresh * inputPrice + cached * cachedPrice + usage.outputTokens * outputPrice) / PER
}
