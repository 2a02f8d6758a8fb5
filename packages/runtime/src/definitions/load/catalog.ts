import { mergeVariables } from './required-variables.ts'
import { relationsOf, sidesOf } from './related-definitions.ts'
import type { Registry, ResolvedAgent } from '../resolved.ts'
import type { VariableDefinition } from '../prompt-definition.ts'

/** An agent in lists and forms: plain JSON without functions. */
export interface CatalogEntry {
  readonly name: string
  readonly type: 'ai_human' | 'dual_ai'
  readonly title?: string
  readonly description?: string
  readonly icon?: string
  readonly sides: { readonly a: string; readonly b: string | null }
  /** Names of the tools that its prompts may call. */
  readonly tools: readonly string[]
  /**
   * The variables that a thread of this agent reads. Variables of a child are requested when the child is
   * created.
   */
  readonly variables: readonly CatalogVariable[]
  readonly exposeAsTool: boolean
  readonly maxSessionTurns: number | null
}

/** A variable that a thread of the agent reads. */
export interface CatalogVariable {
  readonly name: string
  readonly type: 'text' | 'secret'
  readonly required: boolean
  readonly scoped: boolean
  readonly description?: string
  /** Whether the agent or a prompt already sets a value. */
  readonly hasDefault: boolean
}

/** Lists all agents, by name. */
export function catalog(registry: Registry): readonly CatalogEntry[] {
  const entries = [...registry.agents.values()].map((agent): CatalogEntry => {
    const { name, type, definition, a, b, maxSessionTurns } = agent
    const { title, description, icon, exposeAsTool = false } = definition
    // Undefined fields are omitted, so that an entry equals its own JSON.
    const texts = Object.entries({ title, description, icon }).filter(
      ([, text]) => text !== undefined,
    )
    const tools = sidesOf(agent).flatMap(({ prompt }) => prompt.tools.map((tool) => tool.name))
    return {
      name,
      type,
      ...Object.fromEntries(texts),
      sides: { a: a.label, b: b?.label ?? null },
      tools: [...new Set(tools)],
      variables: variablesOf(agent, registry),
      exposeAsTool,
      maxSessionTurns: Number.isFinite(maxSessionTurns) ? maxSessionTurns : null,
    }
  })
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1))
}

/** Returns the agent's own variables, and the variables that its children inherit from it (those not scoped). */
function variablesOf(agent: ResolvedAgent, { agents }: Registry): CatalogVariable[] {
  const names = new Set([agent])
  const variables: VariableDefinition[] = []
  const values = new Set<string>()
  for (const each of names) {
    for (const name of Object.keys(each.definition.env ?? {})) values.add(name)
    for (const { prompt } of sidesOf(each)) {
      variables.push(...prompt.variables.filter(({ scoped }) => each === agent || !scoped))
      for (const name of Object.keys(prompt.definition.env ?? {})) values.add(name)
      for (const { agent: child } of relationsOf(prompt.tools)) {
        const definition = agents.get(child)
        if (definition) names.add(definition)
      }
    }
  }
  return mergeVariables(variables).map(({ name, type, required, scoped, description }) => ({
    name,
    type: type ?? 'text',
    required: required ?? false,
    scoped: scoped ?? false,
    description,
    hasDefault: values.has(name),
  }))
}
