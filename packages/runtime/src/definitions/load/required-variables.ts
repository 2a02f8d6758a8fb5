import type { Relation, ResolvedAgent, ResolvedTool } from '../resolved.ts'
import type { VariableDefinition } from '../types.ts'
import { mergeVariables } from './variables.ts'

/** The scoped variables that an agent's prompts require, with those of all children it may have. */
export function requiredVariables(
  agent: string,
  agents: ReadonlyMap<string, ResolvedAgent>,
): readonly VariableDefinition[] {
  const reached = new Set([agent])
  const declared: VariableDefinition[] = []
  for (const name of reached) {
    const found = agents.get(name)
    if (!found) continue
    for (const { prompt } of sidesOf(found)) {
      declared.push(...prompt.variables)
      for (const { agent: child } of relationsOf(prompt.tools)) reached.add(child)
    }
  }
  return mergeVariables(declared).filter(({ scoped, required }) => scoped && required)
}

/** The sides that are played by models. */
export function sidesOf({ a, b }: ResolvedAgent): readonly ResolvedAgent['a'][] {
  return b ? [a, b] : [a]
}

export function relationsOf(tools: readonly ResolvedTool[]): readonly Relation[] {
  return tools.flatMap((tool) => (tool.kind === 'subagent' ? [tool.relation] : []))
}
