import type { Params } from '@skein/ai'
import type { ResolvedModel, ResolvedPrompt, ResolvedSide } from '../definitions/resolved.ts'

/**
 * Returns the parameters for the vendor. Later sources override earlier ones: first the prompt's effort
 * and tool choice, then the model's options, then the prompt's options.
 */
export async function paramsOf(resolved: ResolvedModel, { prompt }: ResolvedSide): Promise<Params> {
  const { providerOptions } = prompt.definition
  const params = await meant(resolved, prompt)
  return { ...params, ...resolved.definition?.providerOptions, ...providerOptions }
}

/**
 * Converts reasoning effort and tool choice to the vendor's parameters, if the model uses a vendor
 * format (wire) of this library that has such parameters. Only then the gateway is loaded.
 */
async function meant(
  { model }: ResolvedModel,
  { definition, tools }: ResolvedPrompt,
): Promise<Params> {
  const { reasoning, toolChoice } = definition
  const isRequired = toolChoice === 'required' && tools.length > 0
  if (!reasoning?.effort && !isRequired) return {}
  const wire = model.provider.handlers.llm?.bind(model).wire
  if (wire === undefined) return {}
  const words: Record<string, unknown> = {}
  if (reasoning?.effort) words['reasoning_effort'] = reasoning.effort
  if (isRequired) words['tool_choice'] = 'required'
  const { translateParams } = await import('@skein/ai/gateway')
  return translateParams(words, 'openai-chat', wire).params
}
