import { frozenCopy } from './frozen-copy.ts'
import type { ModelDefinition } from './types.ts'

/** Defines a model with its stand-ins and prices, so that prompts can name it. */
export function defineModel(model: Omit<ModelDefinition, 'kind'>): ModelDefinition {
  const { fallbacks, capabilities } = model
  return Object.freeze({
    ...model,
    kind: 'model' as const,
    ...(fallbacks !== undefined && { fallbacks: frozenCopy(fallbacks) }),
    ...(capabilities !== undefined && { capabilities: frozenCopy(capabilities) }),
  })
}
