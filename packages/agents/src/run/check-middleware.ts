import { hasModelHooks } from '@skein/ai'
import { invalidUse } from '../contract/agent-error.ts'
import type { Middleware, ModellessOptions } from '../contract/agent-types.ts'

/** The hooks of an agent's middleware that middleware of a model does not have. */
const agentHooks: Readonly<Record<Exclude<keyof Middleware, 'name' | 'onError'>, true>> = {
  before: true,
  after: true,
  onInference: true,
}

/**
 * Throws for middleware in the wrong option. Both kinds have the same form but other hooks, none of which would ever
 * be called.
 */
export function checkMiddleware({ middleware = [], llmMiddleware = [] }: ModellessOptions): void {
  const wrong = [
    ...middleware
      .filter((one) => hasModelHooks(one) && !hasAgentHooks(one))
      .map(named('middleware')),
    ...llmMiddleware
      .filter((one) => hasAgentHooks(one) && !hasModelHooks(one))
      .map(named('llmMiddleware')),
  ]
  if (wrong.length === 0) return
  throw invalidUse(
    `The hooks of ${wrong.join(' and ')} would never be called.`,
    'Middleware of the model (onRequest, wrapInference, …) goes in `llmMiddleware`; middleware of the agent (before, after, onInference) goes in `middleware`.',
  )
}

function hasAgentHooks(middleware: unknown): boolean {
  if (typeof middleware !== 'object' || middleware === null) return false
  return Object.keys(agentHooks).some((name) => name in middleware)
}

function named(option: string): (middleware: { readonly name: string }) => string {
  return ({ name }) => `"${name}" in ${option}`
}
