import type { ModelDefinition } from './types.ts'

/** Defines a model with its stand-ins and prices, so that prompts can name it. */
export function defineModel(model: Omit<ModelDefinition, 'kind'>): ModelDefinition {
  return Object.freeze({ ...model, kind: 'model' as const })
}
