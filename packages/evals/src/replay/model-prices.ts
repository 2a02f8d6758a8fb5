import type { ModelReference, TokenUsage } from '@skein/ai'
import { type ModelPrices, tokenCost } from '@skein/ai/middleware'
import type { Registry, ResolvedModel, ResolvedPrompt } from '@skein/runtime'
import type { RecordedUsage } from '../recorded/recorded-thread.ts'

/** What the models of these definitions cost, as far as it is known. */
export class ModelPriceList {
  readonly #prices = new Map<ModelReference, ModelPrices>()

  constructor(registry: Registry) {
    for (const { model, price } of modelsOf(registry)) if (price) this.#prices.set(model, price)
  }

  /** Returns the tokens and the cost of an answer: the vendor's own number, else computed from the price. */
  spentOn(model: ModelReference, usage: TokenUsage): RecordedUsage {
    const { inputTokens, outputTokens, cacheReadTokens, totalTokens } = usage
    const price = this.#prices.get(model)
    const computed = price ? tokenCost(usage, price) : totalTokens === 0 ? 0 : null
    const costUsd = usage.costUsd ?? computed
    return { inputTokens, outputTokens, cachedTokens: cacheReadTokens, costUsd }
  }
}

/** Returns the models that a limit in US dollars could not count, as `provider/model`. */
export function unpricedModels(registry: Registry): readonly string[] {
  const names = new Set<string>()
  for (const { model, price } of modelsOf(registry))
    if (!price && !TELL_COST.has(model.provider.name))
      names.add(`${model.provider.name}/${model.modelId}`)
  return [...names]
}

/** Providers that report with each answer what it has cost. */
const TELL_COST: ReadonlySet<string> = new Set(['openrouter'])

function modelsOf({ agents }: Registry): readonly ResolvedModel[] {
  const prompts = new Set<ResolvedPrompt>()
  for (const { a, b } of agents.values()) {
    prompts.add(a.prompt)
    if (b) prompts.add(b.prompt)
  }
  // A set also visits what is added to it meanwhile.
  for (const { tools } of prompts)
    for (const tool of tools) if (tool.kind === 'prompt') prompts.add(tool.prompt)
  return [...prompts].flatMap(({ models }) => models)
}
