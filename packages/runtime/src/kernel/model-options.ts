import type { Params, TokenUsage } from '@skein/ai'
import type { ResolvedModel, ResolvedSide } from '../definitions/resolved.ts'
import { priceOf } from '../services/price.ts'

/** The vendor's parameters: the model's, and over them the prompt's. */
export function paramsOf({ definition }: ResolvedModel, { prompt }: ResolvedSide): Params {
  return { ...definition?.providerOptions, ...prompt.definition.providerOptions }
}

/** What an answer cost, as far as anybody says. */
export function costOf({ definition }: ResolvedModel, usage: TokenUsage): number | undefined {
  return usage.costUsd ?? (definition && priceOf(definition, usage))
}
