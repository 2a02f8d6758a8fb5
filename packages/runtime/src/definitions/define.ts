import { frozenDefinition } from './frozen-definition.ts'
import type { HookName } from './hooks.ts'
import type { EndpointDefinition } from './endpoint-definition.ts'
import type { HookDefinition } from './hook-definition.ts'
import type { ModelDefinition } from './model-definition.ts'
import type { PromptDefinition } from './prompt-definition.ts'

/**
 * Defines the text, the model and the tools of one side of an agent's conversation.
 *
 *     const supportPrompt = definePrompt({
 *       name: 'support',
 *       prompt: 'You help customers of a book shop.',
 *       model: anthropic('claude-sonnet-4-5'),
 *       tools: [findOrder],
 *     })
 */
export function definePrompt<Data = unknown>(
  prompt: Omit<PromptDefinition<Data>, 'kind'>,
): PromptDefinition<Data> {
  const fields = Object.entries(prompt).map(([key, value]) => [key, frozenDefinition(value)])
  return Object.freeze({ ...Object.fromEntries(fields), kind: 'prompt' }) as PromptDefinition<Data>
}

/** Defines a model with its fallbacks and prices, so that prompts can name it. */
export function defineModel(model: Omit<ModelDefinition, 'kind'>): ModelDefinition {
  return Object.freeze({
    ...model,
    kind: 'model' as const,
    fallbacks: frozenDefinition(model.fallbacks),
    capabilities: frozenDefinition(model.capabilities),
  })
}

/**
 * Defines code (a hook) that runs at a fixed point, e.g. before a message is stored, in threads whose agents list it.
 *
 *     const shout = defineHook({
 *       id: 'shout',
 *       hook: 'after_system_message',
 *       execute: (state, text) => text.toUpperCase(),
 *     })
 */
export function defineHook<Name extends HookName>(
  hook: Omit<HookDefinition<Name>, 'kind'>,
): HookDefinition<Name> {
  return Object.freeze({ ...hook, kind: 'hook' as const })
}

/** The function that handles requests to a route. */
export type EndpointHandler = EndpointDefinition['execute']

/**
 * Defines a route that every thread has. Below `endpoints/`, the file name determines path and method, so
 * that the handler alone is sufficient.
 */
export function defineEndpoint(handler: EndpointHandler): EndpointHandler

export function defineEndpoint(endpoint: Omit<EndpointDefinition, 'kind'>): EndpointDefinition

export function defineEndpoint(
  endpoint: EndpointHandler | Omit<EndpointDefinition, 'kind'>,
): EndpointHandler | EndpointDefinition {
  if (typeof endpoint === 'function') return endpoint
  return Object.freeze({ ...endpoint, kind: 'endpoint' as const })
}
