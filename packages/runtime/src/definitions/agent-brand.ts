import type { AgentDefinition } from './agent-definition.ts'

const brand: symbol = Symbol.for('skein.agent')

/** Freezes an agent, and gives it the symbol by which `isAgentLike` recognises it. */
export function branded(
  fields: object,
  { source: made }: { readonly source?: object } = {},
): AgentDefinition<never> {
  // The symbols are not enumerable, because they are no fields of the agent.
  Object.defineProperty(fields, brand, { value: true })
  if (made) Object.defineProperty(fields, subagentSource, { value: made })
  return Object.freeze(fields) as AgentDefinition<never>
}

/**
 * Whether the value was made by `defineAgent` or is any object with `sideA` or `sideB`, even if its other
 * fields are wrong.
 */
export function isAgentLike(value: object): boolean {
  return brand in value || 'sideA' in value || 'sideB' in value
}

/** The key under which a subagent keeps the agent that it was made of. */
const subagentSource: symbol = Symbol.for('skein.subagent-of')

/** Returns the agent that `asSubagent` made this agent of; undefined for any other agent. */
export function sourceOf(agent: object): object | undefined {
  return (agent as { readonly [subagentSource]?: object })[subagentSource]
}
