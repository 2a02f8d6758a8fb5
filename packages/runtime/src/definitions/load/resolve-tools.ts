import type { Relation, ResolvedTool } from '../resolved.ts'
import type { SubagentToolConfig } from '../prompt-definition.ts'
import type { ToolDefinition } from '../tool-definition.ts'
import { findDefinition, unknownName, type GatheredDefinition } from './definition-index.ts'
import type { Catalog } from './gather.ts'
import { at, report, type Place } from './readers.ts'
import type { ReadAgent, ReadSide } from './read-agent.ts'
import type { ReadTool } from './read-definition.ts'
import {
  readSubagentConfig,
  readSubpromptConfig,
  readToolConfig,
  type ReadPrompt,
  type ReadPromptTool,
} from './read-prompt.ts'

/** A resolved entry in the tools of a prompt. */
export interface LoadedTool {
  readonly resolved: ResolvedTool
  readonly place: Place
  /**
   * Whether the prompt lists the entry with a configuration; an agent must not be listed both with and
   * without a configuration.
   */
  readonly isConfigured: boolean
  /** The definition of the tool, from which its variables are read. */
  readonly entry: GatheredDefinition<ReadTool> | undefined
  /** If the tool is a prompt, this is the prompt; it is resolved later. */
  readonly subprompt?: GatheredDefinition<ReadPrompt>
}

/** Resolves the tools of a prompt, and reports every problem in the list. */
export function resolveTools(
  entry: GatheredDefinition<ReadPrompt>,
  catalog: Catalog,
): readonly LoadedTool[] {
  const tools: LoadedTool[] = []
  const place = at(entry.place, 'tools')
  for (const [index, tool] of (entry.read.tools ?? []).entries()) {
    const resolvedTool = tool && resolveTool(tool, at(place, index), catalog)
    if (!resolvedTool) continue
    const other = tools.find(({ resolved }) => resolved.name === resolvedTool.resolved.name)
    if (!other) {
      tools.push(resolvedTool)
      continue
    }
    const { name, kind } = resolvedTool.resolved
    const isAgent = (one: string): boolean => one === 'subagent' || one === 'handoff'
    const areAgents = isAgent(kind) && isAgent(other.resolved.kind)
    const message =
      areAgents && resolvedTool.isConfigured !== other.isConfigured
        ? `the agent "${name}" is listed both plainly and with a configuration`
        : `two tools of this prompt are called "${name}"`
    report(resolvedTool.place, message)
  }
  return tools
}

function resolveTool(tool: ReadPromptTool, place: Place, catalog: Catalog): LoadedTool | undefined {
  const config = tool.form === 'config' ? tool.config : undefined
  const target = findTarget(tool, place, catalog)
  if (!target) return undefined
  if (target.agent) return resolveAgentTool(target.agent, { config, place })
  if (target.prompt) return resolveSubprompt(target.prompt, { config, place })
  if (!target.tool) return undefined
  const { name, definition } = target.tool
  const fields = config && readToolConfig(config, place)
  if (name === undefined) return undefined
  return {
    resolved: {
      kind: 'tool',
      name,
      tool: definition as ToolDefinition, // its fields were checked separately
      config: fields && { ...fields, name },
    },
    place,
    isConfigured: config !== undefined,
    entry: target.tool,
  }
}

interface Target {
  readonly tool?: GatheredDefinition<ReadTool>
  readonly agent?: GatheredDefinition<ReadAgent>
  readonly prompt?: GatheredDefinition<ReadPrompt>
}

function findTarget(tool: ReadPromptTool, place: Place, catalog: Catalog): Target | undefined {
  if (tool.form === 'tool') return found(catalog.tool.byObject.get(tool.tool))
  if (tool.form === 'agent') return found(undefined, catalog.agent.byObject.get(tool.agent))
  if (tool.form === 'prompt')
    return found(undefined, undefined, catalog.prompt.byObject.get(tool.prompt))
  const { name } = tool
  if (typeof name === 'object') {
    const { tool: tools, agent: agents, prompt: prompts } = catalog
    return found(tools.byObject.get(name), agents.byObject.get(name), prompts.byObject.get(name))
  }
  const field = tool.form === 'config' ? at(place, 'name') : place
  const [known, agent] = [catalog.tool.byName.get(name), catalog.agent.byName.get(name)]
  if (known && agent) {
    return report(field, `"${name}" is the name of a tool and of an agent; refer to it by object`)
  }
  // An agent and its prompt often have the same name, so a prompt is used only if no agent or tool has the
  // name.
  const target = found(known, agent, catalog.prompt.byName.get(name))
  if (target) return target
  const names = [...catalog.tool.byName.keys(), ...catalog.agent.byName.keys()]
  return report(field, unknownName('tool or agent', name, names))
}

function found(
  tool: Target['tool'],
  agent?: Target['agent'],
  prompt?: Target['prompt'],
): Target | undefined {
  return tool ? { tool } : agent ? { agent } : prompt && { prompt }
}

function resolveSubprompt(
  subprompt: GatheredDefinition<ReadPrompt>,
  { config, place }: { config: Record<string, unknown> | undefined; place: Place },
): LoadedTool | undefined {
  const { name, read } = subprompt
  const options = config && readSubpromptConfig(config, place)
  const field = config ? at(place, 'name') : place
  const { toolDescription = '', tools = [] } = read
  if (toolDescription.trim() === '')
    report(field, `the prompt "${name}" is used as a tool, but lacks toolDescription`)
  if (tools.length > 0)
    report(
      field,
      `the prompt "${name}" is used as a tool, but has tools itself; list an agent instead`,
    )
  if (name === undefined) return undefined
  const result: ResolvedTool = {
    kind: 'prompt',
    name,
    description: toolDescription,
    prompt: undefined as never, // set by `resolvePrompts` when all prompts are resolved
    config: { ...options, name },
  }
  return {
    resolved: result,
    place,
    isConfigured: config !== undefined,
    entry: undefined,
    subprompt,
  }
}

function resolveAgentTool(
  agent: GatheredDefinition<ReadAgent>,
  { config, place }: { config: Record<string, unknown> | undefined; place: Place },
): LoadedTool | undefined {
  const { name, read } = agent
  const options = config && readSubagentConfig(config, place)
  const field = config ? at(place, 'name') : place
  const type = typeOf(agent)
  if (read.exposeAsTool !== true) {
    report(field, `the agent "${name}" is not for use as a tool: it lacks exposeAsTool: true`)
  }
  if (type === 'ai_human' && config) {
    report(
      field,
      `a subagent must be dual_ai, but "${name}" is ai_human; list it plainly to hand off`,
    )
  }
  if (name === undefined || type === undefined) return undefined
  const description = read.toolDescription ?? ''
  const result: ResolvedTool =
    type === 'ai_human'
      ? { kind: 'handoff', name, agent: name, description }
      : {
          kind: 'subagent',
          name: read.name ?? name,
          relation: toRelation({ ...options, name }, { key: read.name, description, place }),
        }
  return { resolved: result, place, isConfigured: config !== undefined, entry: undefined }
}

/** Resolves the subagents that a side lists itself (Standard Agents 0.2.0). */
export function resolveSubagents(
  { subagents = [] }: Pick<ReadSide, 'subagents'>,
  place: Place,
  catalog: Catalog,
): readonly LoadedTool[] {
  return subagents.flatMap((read, index) => {
    if (!read) return []
    const own = at(at(place, 'subagents'), index)
    const { agent: reference, as, description, hidden = false, scopedEnv, ...config } = read
    const agent = findDefinition(catalog.agent, reference, {
      kind: 'agent',
      place: at(own, 'agent'),
    })
    const type = agent && typeOf(agent)
    if (type === 'ai_human')
      report(own, `a subagent must have two sides that are no people, but "${agent?.name}" has not`)
    if (agent?.name === undefined || type !== 'dual_ai') return []
    const { immediate = false } = config
    if (hidden && immediate === false)
      report(at(own, 'hidden'), 'a hidden subagent never starts unless it is immediate')
    const { name } = agent
    const text = description ?? agent.read.toolDescription ?? ''
    const key = as ?? agent.read.name ?? name
    const relation = toRelation({ ...config, name }, { key, description: text, place: own })
    const variables = [...relation.scopedEnv, ...(scopedEnv ?? [])]
    const ownRelation = { ...relation, scopedEnv: variables, isHidden: hidden }
    const result: ResolvedTool = { kind: 'subagent', name: key, relation: ownRelation }
    return [{ resolved: result, place: own, isConfigured: true, entry: undefined }]
  })
}

/**
 * Returns the type of an agent; undefined if its `type` is invalid. An agent without a `type` that uses
 * fields of Standard Agents 0.2.0 is `dual_ai` if its side B is no person.
 */
export function typeOf({
  read,
  definition,
}: GatheredDefinition<ReadAgent>): 'ai_human' | 'dual_ai' | undefined {
  if (read.type !== undefined) return read.type
  if ((definition as { type?: unknown }).type !== undefined) return undefined
  const { sideA, sideB } = read
  const isLater = [sideA, sideB].some((side) => side?.human ?? side?.handler ?? side?.subagents)
  return isLater && sideB && !sideB.human ? 'dual_ai' : 'ai_human'
}

function toRelation(
  config: SubagentToolConfig & { readonly name: string },
  {
    key,
    description,
    place,
  }: { readonly key?: string; readonly description: string; readonly place: Place },
): Relation {
  const { name, blocking = true, immediate = false, resumable = false, optional } = config
  const { receives_messages, receivesMessages, ...kept } = resumable || {}
  if (receives_messages && receivesMessages && receives_messages !== receivesMessages) {
    report(at(place, 'resumable'), 'receives_messages and receivesMessages say different things')
  }
  const hints = typeof immediate === 'object' ? immediate : {}
  return {
    key: key ?? name,
    agent: name,
    description,
    config: { ...config, blocking },
    isBlocking: blocking,
    isResumable: resumable !== false,
    receives: (receives_messages ?? receivesMessages) === 'side_b' ? 'b' : 'a',
    maxInstances: kept.maxInstances ?? Infinity,
    communication: kept.parentCommunication ?? 'implicit',
    isImmediate: immediate !== false,
    nameEnv: hints.nameEnv,
    descriptionEnv: hints.descriptionEnv,
    scopedEnv: hints.scopedEnv ?? [],
    optional,
    isHidden: false,
    requiredVariables: [], // set later by `fillRequiredVariables`
  }
}

/** Returns the tools, the tools that they may use, and so on. */
export function withUses(
  tools: Iterable<GatheredDefinition<ReadTool>>,
  catalog: Catalog,
): Set<GatheredDefinition<ReadTool>> {
  const names = new Set(tools)
  for (const { read } of names) {
    for (const reference of read.uses ?? []) {
      const used =
        typeof reference === 'string'
          ? catalog.tool.byName.get(reference)
          : reference && catalog.tool.byObject.get(reference)
      if (used) names.add(used)
    }
  }
  return names
}

/**
 * Reports names in `uses` that are unknown, and a rollback by a tool that is unknown or does not run here: the
 * governor would refuse every call.
 */
export function checkUses({ read, place }: GatheredDefinition<ReadTool>, catalog: Catalog): void {
  for (const [index, reference] of (read.uses ?? []).entries()) {
    findDefinition(catalog.tool, reference, { kind: 'tool', place: at(at(place, 'uses'), index) })
  }
  const { rollback } = read.governance ?? {}
  if (typeof rollback !== 'object') return
  const field = at(at(place, 'rollback'), 'tool')
  const undo = findDefinition(catalog.tool, rollback.tool, { kind: 'tool', place: field })
  if (undo && !undo.read.run)
    report(field, `"${rollback.tool}" runs at the client, and cannot undo`)
}
