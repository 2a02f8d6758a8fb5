import type { Params, TokenUsage } from '@skein/ai'
import { translateParams } from '@skein/ai/gateway'
import type { ResolvedModel, ResolvedPrompt, ResolvedSide } from '../definitions/resolved.ts'
import { priceOf } from '../services/price.ts'

/** The vendor's parameters: what the prompt means in the vendor's words, the model's, the prompt's own. */
export function paramsOf(resolved: ResolvedModel, { prompt }: ResolvedSide): Params {
  const { providerOptions } = prompt.definition
  return { ...meant(resolved, prompt), ...resolved.definition?.providerOptions, ...providerOptions }
}

/** Effort and tool choice, where the model's wire is one of ours and has a word for them. */
function meant({ model }: ResolvedModel, { definition, tools }: ResolvedPrompt): Params {
  const { reasoning, toolChoice } = definition
  const isRequired = toolChoice === 'required' && tools.length > 0
  if (!reasoning?.effort && !isRequired) return {}
  const wire = model.provider.handlers.llm?.bind(model).wire
  if (wire === undefined) return {}
  const words = {
    ...(reasoning?.effort && { reasoning_effort: reasoning.effort }),
    ...(isRequired && { tool_choice: 'required' }),
  }
  return translateParams(words, 'openai-chat', wire).params
}

/** What an answer cost, as far as anybody says. */
export function costOf({ definition }: ResolvedModel, usage: TokenUsage): number | undefined {
  return usage.costUsd ?? (definition && priceOf(definition, usage))
}
