import { at, report } from './readers.ts'
import type { LoadedAgent } from './resolve-agent.ts'
import type { LoadedPrompt } from './resolve-prompt.ts'
import type { LoadedTool } from './resolve-tools.ts'
import type { Relation, ResolvedAgent, ResolvedTool } from '../resolved.ts'
import type { VariableDefinition } from '../types.ts'

/** Reports what only shows when all agents are known together. */
export function checkGraph(agents: readonly LoadedAgent[], prompts: readonly LoadedPrompt[]): void {
  for (const agent of agents) checkHandoffs(agent)
  checkImmediateCycles(agents)
  checkSecrets(agents, prompts)
}

/** A thread of two models cannot be handed to an agent that talks with a person. */
function checkHandoffs({ entry, type, prompts }: LoadedAgent): void {
  if (type !== 'dual_ai') return
  const seen = new Set<LoadedPrompt>()
  for (const { field, prompt } of prompts) {
    if (seen.has(prompt)) continue
    seen.add(prompt)
    for (const { resolved } of prompt.tools) {
      if (resolved.kind !== 'handoff') continue
      report(
        at(at(entry.place, field), 'prompt'),
        `a dual_ai agent cannot hand off, but its prompt "${prompt.resolved.name}" lists the ai_human agent "${resolved.name}"`,
      )
    }
  }
}

/** Children that are created at once and create their creator at once would never end. */
function checkImmediateCycles(agents: readonly LoadedAgent[]): void {
  const byName = new Map(agents.map((agent) => [agent.entry.name, agent]))
  const done = new Set<LoadedAgent>()
  const path: { agent: LoadedAgent; tool: LoadedTool }[] = []

  function visit(agent: LoadedAgent): void {
    if (done.has(agent)) return
    for (const { tool, target } of immediateEdges(agent)) {
      path.push({ agent, tool })
      const start = path.findIndex((step) => step.agent.entry.name === target)
      if (start >= 0) reportCycle(path.slice(start))
      else visitName(target)
      path.pop()
    }
    done.add(agent)
  }

  function visitName(name: string): void {
    const next = byName.get(name)
    if (next) visit(next)
  }

  for (const agent of agents) visit(agent)
}

function reportCycle(cycle: readonly { agent: LoadedAgent; tool: LoadedTool }[]): void {
  const [first] = cycle
  if (!first) return
  const names = [...cycle, first].map(({ agent }) => agent.entry.name)
  report(
    at(first.tool.place, 'immediate'),
    `immediate subagents create each other without end: ${names.join(' → ')}`,
  )
}

function immediateEdges({ prompts }: LoadedAgent): { tool: LoadedTool; target: string }[] {
  return [...new Set(prompts.map(({ prompt }) => prompt))].flatMap(({ tools }) =>
    tools.flatMap((tool) =>
      tool.resolved.kind === 'subagent' && tool.resolved.relation.isImmediate
        ? [{ tool, target: tool.resolved.relation.agent }]
        : [],
    ),
  )
}

/** A secret in a prompt's text would go to the vendor and into every record. */
function checkSecrets(agents: readonly LoadedAgent[], prompts: readonly LoadedPrompt[]): void {
  const reported = new Set<string>()
  const together = [
    ...agents.map((agent) => agent.prompts.map(({ prompt }) => prompt)),
    ...prompts.map((prompt) => [prompt]),
  ]
  for (const group of together) {
    const variables = mergeVariables(group.flatMap(({ resolved }) => resolved.variables))
    const secrets = new Set(
      variables.filter(({ type }) => type === 'secret').map(({ name }) => name),
    )
    for (const { part, place } of group.flatMap(({ unfolded }) => unfolded.parts)) {
      if (part.type !== 'env' || !secrets.has(part.property)) continue
      const key = `${place.subject}\n${place.field}`
      if (reported.has(key)) continue
      reported.add(key)
      report(
        at(place, 'property'),
        `"${part.property}" is declared as a secret, and secrets must not be in a prompt; read it in a tool with state.env`,
      )
    }
  }
}

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

/** One declaration per name. Where several differ, the stricter word counts: secret, required, scoped. */
export function mergeVariables(
  declared: Iterable<VariableDefinition>,
): readonly VariableDefinition[] {
  const merged = new Map<string, VariableDefinition>()
  for (const variable of declared) {
    const other = merged.get(variable.name)
    merged.set(variable.name, other ? stricter(other, variable) : variable)
  }
  return Object.freeze([...merged.values()])
}

function stricter(a: VariableDefinition, b: VariableDefinition): VariableDefinition {
  const description = a.description ?? b.description
  return {
    name: a.name,
    type: a.type === 'secret' || b.type === 'secret' ? 'secret' : 'text',
    required: a.required === true || b.required === true,
    scoped: a.scoped === true || b.scoped === true,
    description,
  }
}
