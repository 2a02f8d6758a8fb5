import { at, report } from './readers.ts'
import type { LoadedAgent } from './resolve-agent.ts'
import type { LoadedPrompt } from './resolve-prompt.ts'
import type { LoadedTool } from './resolve-tools.ts'
import type {
  Relation,
  ResolvedAgent,
  ResolvedModel,
  ResolvedPrompt,
  ResolvedTool,
} from '../resolved.ts'
import type { VariableDefinition } from '../types.ts'

/** Reports problems that can only be found when all agents are known. */
export function checkGraph(agents: readonly LoadedAgent[], prompts: readonly LoadedPrompt[]): void {
  for (const agent of agents) checkHandoffs(agent)
  checkImmediateCycles(agents)
  checkSecrets(agents, prompts)
}

/**
 * Reports handoffs from a `dual_ai` agent to an `ai_human` agent, because a `dual_ai` thread has no person.
 */
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

/** Reports immediate subagents that create each other, because they would create threads endlessly. */
function checkImmediateCycles(agents: readonly LoadedAgent[]): void {
  const byName = new Map(agents.map((agent) => [agent.entry.name, agent]))
  const done = new Set<LoadedAgent>()
  const path: { agent: LoadedAgent; tool: LoadedTool }[] = []

  function visit(agent: LoadedAgent): void {
    if (done.has(agent)) return
    const tools = new Set(agent.prompts.map(({ prompt }) => prompt).flatMap((one) => one.tools))
    for (const tool of tools) {
      const { resolved, place } = tool
      if (resolved.kind !== 'subagent' || !resolved.relation.isImmediate) continue
      const target = resolved.relation.agent
      path.push({ agent, tool })
      const start = path.findIndex((step) => step.agent.entry.name === target)
      const next = byName.get(target)
      if (start >= 0) {
        const names = [...path.slice(start), path[start]!].map((step) => step.agent.entry.name)
        report(
          at(path[start]?.tool.place ?? place, 'immediate'),
          `immediate subagents create each other without end: ${names.join(' → ')}`,
        )
      } else if (next) visit(next)
      path.pop()
    }
    done.add(agent)
  }

  for (const agent of agents) visit(agent)
}

/** Reports secrets in the text of a prompt, because they would be sent to the vendor and stored in logs. */
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
 * Sets `requiredVariables` of every relation: the scoped variables that the prompts of its agent require, and
 * those of all children that the agent may have. Relations are created before all agents are known, so this
 * is done last, before the registry is returned.
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
  const requiredBy = (agent: string): readonly VariableDefinition[] => {
    const reached = new Set([agent])
    const declared: VariableDefinition[] = []
    for (const name of reached) {
      const { variables, relations } = facts.get(name) ?? { variables: [], relations: [] }
      declared.push(...variables)
      for (const { agent: child } of relations) reached.add(child)
    }
    return mergeVariables(declared).filter(({ scoped, required }) => scoped && required)
  }
  const required = new Map<string, readonly VariableDefinition[]>()
  for (const { relations } of facts.values()) {
    for (const relation of relations) {
      const known = required.get(relation.agent) ?? requiredBy(relation.agent)
      required.set(relation.agent, known)
      const open: { -readonly [Key in keyof Relation]: Relation[Key] } = relation
      open.requiredVariables = known
    }
  }
}

/** Returns the sides that are played by models. */
export function sidesOf({ a, b }: ResolvedAgent): readonly ResolvedAgent['a'][] {
  return b ? [a, b] : [a]
}

/** Returns the models of a prompt and of the prompts that are its tools. */
export function askedModels({ models, tools }: ResolvedPrompt): readonly ResolvedModel[] {
  const asked = tools.flatMap((tool) => (tool.kind === 'prompt' ? tool.prompt.models : []))
  return [...models, ...asked]
}

/** Returns the subagents among the tools of a prompt. */
export function relationsOf(tools: readonly ResolvedTool[]): readonly Relation[] {
  return tools.flatMap((tool) => (tool.kind === 'subagent' ? [tool.relation] : []))
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
