import { sha256Hex, toJsonSchema } from '@skein/base'
import { at, report } from './readers.ts'
import type { LoadedAgent } from './resolve-agent.ts'
import type { LoadedPrompt } from './resolve-prompt.ts'
import type { LoadedTool } from './resolve-tools.ts'
import type {
  Relation,
  ResolvedAgent,
  ResolvedModel,
  ResolvedPrompt,
  ResolvedSide,
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

/**
 * Reports subagents that start by themselves (`immediate`) and create each other, because they would create
 * threads endlessly.
 */
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

/** Hex digits of a hash: 128 bits. */
const DIGITS = 32

/**
 * Sets the `hash` of every agent: it names what a session of the agent runs with, so that a log can say with
 * which definitions a session began. The hash covers the agent and all agents that it may hand over to or
 * create as children: their sides, prompts, models and limits, and the names, schemas and risks of tools.
 *
 * The code of tools, hooks and strategies is not part of the hash. The same source has another text after
 * bundling, a text says nothing about what a function closes over, and a corrected tool is meant for threads
 * that run. Titles, labels and options of vendors are left out, because no decision of the runtime depends on
 * them; so are the values of variables, because a hash of a short value can be guessed.
 */
export function fillHashes(agents: ReadonlyMap<string, ResolvedAgent>): void {
  const own = new Map<string, string>()
  for (const [name, agent] of agents) own.set(name, hashOf(described(agent)))
  for (const [name, agent] of agents) {
    const reached = new Set([name])
    for (const each of reached) for (const next of nextAgents(agents.get(each))) reached.add(next)
    const open: { -readonly [Key in keyof ResolvedAgent]: ResolvedAgent[Key] } = agent
    open.hash = hashOf([name, [...reached].sort().map((each) => own.get(each) ?? '')])
  }
}

/** Returns the agents to which an agent may hand over, and those that it may create as children. */
function nextAgents(agent: ResolvedAgent | undefined): readonly string[] {
  const tools = agent ? sidesOf(agent).flatMap(({ prompt }) => prompt.tools) : []
  const handoffs = tools.flatMap((tool) => (tool.kind === 'handoff' ? [tool.agent] : []))
  return [...handoffs, ...relationsOf(tools).map(({ agent: child }) => child)]
}

function described(agent: ResolvedAgent): unknown {
  const { definition, type, name, maxSessionTurns } = agent
  const { budget, taskClass, env = {} } = definition
  const variables = Object.keys(env).sort()
  const sides = sidesOf(agent).map(describedSide)
  return { name, type, maxSessionTurns, budget, taskClass: taskClass?.name, variables, sides }
}

function describedSide(given: ResolvedSide): unknown {
  const { side, prompt, agent, hooks, maxSteps, stopOnResponse, stopTool } = given
  const isHandled = given.handler !== undefined
  const { stopToolResponseProperty, sessionStop, sessionFail, sessionStatus } = given
  const { name, env = {}, output, toolChoice, reasoning, compaction } = prompt.definition
  const { includeChat, includePastTools, parallelToolCalls } = prompt.definition
  return {
    side,
    agent: agent?.id,
    isHandled,
    limits: [maxSteps, stopOnResponse],
    tools: [stopTool, stopToolResponseProperty, sessionStop, sessionFail, sessionStatus],
    hooks: hooks.map(({ id, hook }) => [hook, id]),
    prompt: {
      name,
      settings: [toolChoice, reasoning, compaction],
      history: [includeChat, includePastTools, parallelToolCalls],
      parts: prompt.parts,
      env: Object.keys(env).sort(),
      output: output && toJsonSchema(output),
      models: prompt.models.map(({ name, model }) => [name, model.provider.name, model.modelId]),
      variables: prompt.variables,
      tools: prompt.tools.map(describedTool),
    },
  }
}

function describedTool(tool: ResolvedTool): unknown {
  if (tool.kind !== 'tool') return tool
  const { name, config } = tool
  const { description, parameters, governance, run } = tool.tool
  const isRunHere = run !== undefined
  const { risk } = governance
  return { name, description, parameters, risk, isRunHere, options: config?.options }
}

/** Hashes the JSON of a value. JSON leaves functions out and writes infinite limits as null. */
function hashOf(value: unknown): string {
  return sha256Hex(JSON.stringify(value)).slice(0, DIGITS)
}

/** Returns the sides of an agent's conversation that are not a person. */
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
