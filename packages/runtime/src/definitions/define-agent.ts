import { frozenCopy } from './frozen-copy.ts'
import type { AgentDefinition } from './types.ts'

const brand: symbol = Symbol.for('skein.agent')

/**
 * Defines an agent: one side and a person, or two sides. A subagent is a `dual_ai` agent that a prompt
 * lists among its tools.
 *
 *     const support = defineAgent({
 *       name: 'support',
 *       sideA: { prompt: supportPrompt },
 *     })
 */
export function defineAgent(agent: AgentDefinition): AgentDefinition {
  const { taskClass, ...rest } = agent
  const copy = Object.fromEntries(Object.entries(rest).map(([k, v]) => [k, frozenCopy(v)]))
  const defined = { ...copy, ...(taskClass !== undefined && { taskClass }) }
  // Not enumerable: it tells an agent from a configuration that names one, and is nobody's data.
  Object.defineProperty(defined, brand, { value: true })
  return Object.freeze(defined) as unknown as AgentDefinition // the same fields, copied one by one
}

/** True for what `defineAgent` made and for anything with a side, however wrong the rest may be. */
export function isAgentLike(value: object): boolean {
  return brand in value || 'sideA' in value || 'sideB' in value
}
