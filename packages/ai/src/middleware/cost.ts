import { deepFreeze } from '@skein/base'
import type { MessageStartEvent, StreamEvent } from '../event.ts'
import type { ImageResult } from '../image.ts'
import type { Middleware, MiddlewareContext } from '../middleware.ts'
import { findModel, type ModelCatalog, type ModelPrices } from './model-catalog.ts'
import type { Turn } from '../turn.ts'
import type { TokenUsage } from '../usage.ts'
import { addUsd, imageCost, tokenCost } from './price.ts'

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
  const costUsd = addUsd(costs)
  if (costs.length === 0 || turn.usage.costUsd === costUsd) return turn
  return deepFreeze({ ...turn, usage: { ...turn.usage, costUsd } })
}

function withImageCost(result: ImageResult, prices: ModelPrices | undefined): ImageResult {
  const { usage = {}, images } = result
  if (!prices || usage.costUsd !== undefined) return result
  const costUsd = imageCost({ imagesGenerated: images.length, ...usage }, prices)
  return { ...result, usage: { ...usage, costUsd } }
}
