import type { Relation, ResolvedAgent, ResolvedTool } from '../resolved.ts'
import type { VariableDefinition } from '../types.ts'
import { mergeVariables } from './variables.ts'

/**
 * Writes into every relation the scoped variables that its agent's prompts require, with those of all
 * children it may have. Relations were made before all agents were known; nobody has seen them yet.
 */
export function fillRequiredVariables(agents: ReadonlyMap<string, ResolvedAgent>): void {
  const facts = new Map([...agents].map(([name, agent]) => [name, factsOf(agent)]))
  const required = new Map<string, readonly VariableDefinition[]>()
  for (const { relations } of facts.values()) {
    for (const relation of relations) {
      const known = required.get(relation.agent) ?? requiredBy(relation.agent, facts)
      required.set(relation.agent, known)
      const open: { -readonly [Key in keyof Relation]: Relation[Key] } = relation
      open.requiredVariables = known
    }
  }
}

/** What an agent itself declares, and whom it may create. */
interface Facts {
  readonly variables: readonly VariableDefinition[]
  readonly relations: readonly Relation[]
}

function factsOf(agent: ResolvedAgent): Facts {
  const prompts = sidesOf(agent).map(({ prompt }) => prompt)
  return {
    variables: mergeVariables(prompts.flatMap(({ variables }) => variables)),
    relations: prompts.flatMap(({ tools }) => relationsOf(tools)),
  }
}

function requiredBy(agent: string, facts: ReadonlyMap<string, Facts>): VariableDefinition[] {
  const reached = new Set([agent])
  const declared: VariableDefinition[] = []
  for (const name of reached) {
    const { variables, relations } = facts.get(name) ?? { variables: [], relations: [] }
    declared.push(...variables)
    for (const { agent: child } of relations) reached.add(child)
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
