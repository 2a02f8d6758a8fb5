import type { LLMInstance, Middleware as LLMMiddleware } from '@skein/ai'
import { unknownCost } from '../contract/agent-error.ts'

/**
 * Throws if it is certain that the cost of the model will not be known: its price is missing in the catalog of
 * `costMiddleware`, or nothing computes a cost and the vendor reports none.
 */
export function checkCost(llm: LLMInstance, given: readonly LLMMiddleware[] = []): void {
  const { provider, modelId, wire } = llm.model
  // Vendors that report a cost, e.g. OpenRouter, speak a format of OpenAI, which has none itself.
  const reportsCost = wire === undefined || (wire.startsWith('openai-') && provider !== 'openai')
  if (reportsCost) return
  const cost = given.find(hasPrices)
  // Middleware of the application may set the cost in the events.
  const mayCompute = given.some((one) => one !== cost && (one.wrapInference ?? one.onStreamEvent))
  if (mayCompute) return
  if (!cost || cost.isPriced(provider, modelId) === false)
    throw unknownCost(`the model "${modelId}" of ${provider}`)
}

type WithPrices = LLMMiddleware & {
  isPriced(provider: string, modelId: string): boolean | undefined
}

function hasPrices(middleware: LLMMiddleware): middleware is WithPrices {
  return typeof (middleware as Partial<WithPrices>).isPriced === 'function'
}
