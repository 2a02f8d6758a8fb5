import { relationsOf, sidesOf } from './related-definitions.ts'
import type { Relation, ResolvedAgent } from '../resolved.ts'
import type { VariableDefinition } from '../prompt-definition.ts'

/**
 * Sets `requiredVariables` of every relation (of a prompt to an agent that it may create as a child): the
 * scoped variables that the prompts of its agent require, and those of all children that the agent may have.
 * Relations are created before all agents are known, so this is done last, before the registry is returned.
 */
export function fillRequiredVariables(agents: ReadonlyMap<string, ResolvedAgent>): void {
  /** The variables that each agent declares itself, and the children that it may create. */
  const facts = new Map<
    string,
    { readonly variables: readonly VariableDefinition[]; readonly relations: readonly Relation[] }
  >()
  for (const [name, agent] of agents) {
    const prompts = sidesOf(agent).map(({ prompt }) => prompt)
    facts.set(name, {
      variables: mergeVariables(prompts.flatMap(({ variables }) => variables)),
      relations: prompts.flatMap(({ tools }) => relationsOf(tools)),
    })
  }
  const requiredBy = (agent: string): Relation['requiredVariables'] => {
    const reached = new Set([agent])
    const declared: VariableDefinition[] = []
    for (const name of reached) {
      const { variables, relations } = facts.get(name) ?? { variables: [], relations: [] }
      declared.push(...variables)
      for (const { agent: child } of relations) reached.add(child)
    }
    return mergeVariables(declared)
      .filter(({ scoped, required }) => scoped && required)
      .map((one) => (needsValue(agents, agent, one.name) ? one : { ...one, hasDefault: true }))
  }
  const required = new Map<string, Relation['requiredVariables']>()
  for (const { relations } of facts.values()) {
    for (const relation of relations) {
      const known = required.get(relation.agent) ?? requiredBy(relation.agent)
      required.set(relation.agent, known)
      const open: { -readonly [Key in keyof Relation]: Relation[Key] } = relation
      open.requiredVariables = known
    }
  }
}

/**
 * Whether an agent, or a child that it may create, requires a variable for which neither the agent that
 * requires it nor one on the way to it has a value. A child gets the value that its parent's side reads.
 */
function needsValue(
  agents: ReadonlyMap<string, ResolvedAgent>,
  agent: string,
  variable: string,
): boolean {
  const reached = new Set([agent])
  for (const name of reached) {
    const found = agents.get(name)
    if (!found || Object.hasOwn(found.definition.env ?? {}, variable)) continue
    for (const { prompt } of sidesOf(found)) {
      if (Object.hasOwn(prompt.definition.env ?? {}, variable)) continue
      if (prompt.variables.some((one) => one.name === variable && one.required)) return true
      for (const { agent: child } of relationsOf(prompt.tools)) reached.add(child)
    }
  }
  return false
}

/** Merges declarations with the same name. If they differ, secret, required and scoped take precedence. */
export function mergeVariables(
  declared: Iterable<VariableDefinition>,
): readonly VariableDefinition[] {
  const merged = new Map<string, VariableDefinition>()
  for (const variable of declared) {
    const other = merged.get(variable.name)
    if (!other) {
      merged.set(variable.name, variable)
      continue
    }
    merged.set(variable.name, {
      name: variable.name,
      type: other.type === 'secret' || variable.type === 'secret' ? 'secret' : 'text',
      required: other.required === true || variable.required === true,
      scoped: other.scoped === true || variable.scoped === true,
      description: other.description ?? variable.description,
    })
  }
  return Object.freeze([...merged.values()])
}
