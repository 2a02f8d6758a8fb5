import { silentHandler } from '../as-subagent.ts'
import type { Agent } from '@skein/agents'
import type { ResolvedAgent, ResolvedBinding, ResolvedPrompt, ResolvedSide } from '../resolved.ts'

import { sourceOf } from '../agent-brand.ts'
import type { AgentDefinition, SideConfig } from '../agent-definition.ts'
import type { HookDefinition } from '../hook-definition.ts'
import type { Side } from '../../contract/thread-state.ts'
import type { Catalog } from './gather.ts'
import { findDefinition, type GatheredDefinition } from './definition-index.ts'
import { at, type Place, report, suggest } from './readers.ts'
import type { ReadAgent, ReadSide } from './read-agent.ts'
import type { ReadPrompt } from './read-prompt.ts'
import { promptOfAgent } from './prompt-of-agent.ts'
import type { LoadedPrompt } from './resolve-prompt.ts'
import { type LoadedTool, resolveSubagents, typeOf } from './resolve-tools.ts'

/** An agent whose references were looked up; `resolved` is undefined if one of them was not found. */
export interface LoadedAgent {
  readonly entry: GatheredDefinition<ReadAgent>
  readonly type: 'ai_human' | 'dual_ai' | undefined
  /** The prompts of the sides, as far as they were found. */
  readonly prompts: readonly { readonly field: 'sideA' | 'sideB'; readonly prompt: LoadedPrompt }[]
  readonly resolved: ResolvedAgent | undefined
}

/** The limit of turns in a `dual_ai` session whose agent sets no `maxSessionTurns`. */
export const DEFAULT_SESSION_TURNS = 250

const DESCRIBED_SUBAGENT =
  'is required, because asSubagent makes a tool of the agent; models read it to decide when to ask. Or: asSubagent(agent, { toolDescription })'

/** Looks up the definitions that an agent refers to, and fills in the defaults. */
export function resolveAgent(
  entry: GatheredDefinition<ReadAgent>,
  catalog: Catalog,
  all: ReadonlyMap<GatheredDefinition<ReadPrompt>, LoadedPrompt>,
): LoadedAgent {
  const { read, place, name } = entry
  const type = typeOf(entry)
  const raw = entry.definition as { readonly sideB?: unknown; readonly toolDescription?: unknown }
  if (type === 'dual_ai' && raw.sideB === undefined)
    report(at(place, 'sideB'), 'is required, because the type is dual_ai')
  if (read.sideA?.human)
    report(at(place, 'sideA'), 'must be a model or a handler; the person is side B')
  if (type === 'dual_ai' && read.sideB?.human)
    report(at(place, 'type'), 'must be ai_human or left out, because side B is a person')
  if (type === 'ai_human' && raw.sideB !== undefined && !read.sideB?.human)
    report(at(place, 'sideB'), 'must be left out, because side B of an ai_human agent is a person')
  if (read.exposeAsTool === true && raw.toolDescription === undefined) {
    if (sourceOf(entry.definition)) report(at(place, 'description'), DESCRIBED_SUBAGENT)
    else report(at(place, 'toolDescription'), 'is required, because exposeAsTool is true')
  }
  const hooks = findHooks(read.hooks, at(place, 'hooks'), catalog)
  const definition = entry.definition as AgentDefinition // its fields were already checked
  const load = (side: Side, field: 'sideA' | 'sideB'): LoadedSide | undefined => {
    const [config, written] = [read[field], definition[field]]
    if (!config || !written || config.human) return undefined
    const given = { side, name: name ?? '', config, written, hooks, place: at(place, field) }
    return resolveSide(given, catalog, all)
  }
  const [a, b] = [load('a', 'sideA'), load('b', 'sideB')]
  const prompts = [
    ...(a?.prompt ? [{ field: 'sideA' as const, prompt: a.prompt }] : []),
    ...(b?.prompt ? [{ field: 'sideB' as const, prompt: b.prompt }] : []),
  ]
  // Evidence (recorded facts) can only come from tools that a side can call.
  const names = [a, b].flatMap(
    (side) => side?.resolved?.prompt.tools.map((tool) => tool.name) ?? [],
  )
  for (const [index, need] of (read.taskClass?.needs ?? []).entries()) {
    if (need?.source === undefined || names.includes(need.source)) continue
    const field = at(at(at(place, 'taskClass'), 'needs'), index)
    const message = `"${need.source}" is not among the tools of this agent`
    report(at(field, 'source'), `${message}${suggest(need.source, names)}`)
  }
  const maxSessionTurns =
    read.maxSessionTurns ?? (type === 'dual_ai' ? DEFAULT_SESSION_TURNS : Infinity)
  return {
    entry,
    type,
    prompts,
    resolved:
      a?.resolved && name !== undefined && type !== undefined
        ? { definition, name, type, a: a.resolved, b: b?.resolved, maxSessionTurns, hash: '' }
        : undefined,
  }
}

interface LoadedSide {
  readonly prompt: LoadedPrompt | undefined
  readonly resolved: ResolvedSide | undefined
}

interface GivenSide {
  readonly side: Side
  /** The agent's name. */
  readonly name: string
  readonly config: ReadSide
  readonly written: SideConfig
  readonly hooks: readonly HookDefinition[]
  readonly place: Place
}

function resolveSide(
  given: GivenSide,
  catalog: Catalog,
  prompts: ReadonlyMap<GatheredDefinition<ReadPrompt>, LoadedPrompt>,
): LoadedSide {
  const { config, place } = given
  if (config.agent) return resolveAgentSide({ ...given, agent: config.agent }, catalog)
  if (config.handler) {
    const hooks = config.handler === silentHandler ? [] : given.hooks
    const resolved = toSide({ ...given, hooks }, { resolved: promptOfHandler(given) }, catalog)
    return { prompt: undefined, resolved }
  }
  const entry = findDefinition(catalog.prompt, config.prompt, {
    kind: 'prompt',
    place: at(place, 'prompt'),
  })
  const listed = entry && prompts.get(entry)
  if (!listed) return { prompt: undefined, resolved: undefined }
  const prompt = withSubagents(listed, resolveSubagents(config, place, catalog))
  const own = prompt.entry.read.hooks
  // An empty list means no hooks; without a list the agent's hooks are used.
  const hooks = own ? findHooks(own, undefined, catalog) : given.hooks
  return { prompt, resolved: toSide({ ...given, hooks }, prompt, catalog) }
}

/**
 * Returns the prompt of a side, with the subagents that the side itself lists added to the prompt's tools.
 */
function withSubagents(prompt: LoadedPrompt, subagents: readonly LoadedTool[]): LoadedPrompt {
  if (subagents.length === 0) return prompt
  const tools = [...prompt.tools]
  for (const one of subagents) {
    const { name } = one.resolved
    if (tools.some(({ resolved }) => resolved.name === name))
      report(
        one.place,
        `two tools of this side are called "${name}"; give one another name with as`,
      )
    else tools.push(one)
  }
  const resolved = { ...prompt.resolved, tools: tools.map((tool) => tool.resolved) }
  return { ...prompt, tools, resolved }
}

/** Returns an empty prompt for a function that answers in place of a model, for code that reads the prompt. */
function promptOfHandler({ name, side }: GivenSide): ResolvedPrompt {
  const label = `${name}/${side}`
  const definition = { kind: 'prompt', name: label, prompt: '', model: label } as const
  return { definition, name: label, parts: [], models: [], tools: [], variables: [] }
}

/**
 * Resolves a side that is defined with `agent()` of `@skein/agents`. The tools of that agent belong to this side
 * alone: other definitions cannot refer to them by name.
 */
function resolveAgentSide(
  given: GivenSide & { readonly agent: Agent },
  catalog: Catalog,
): LoadedSide {
  const { agent, name, place } = given
  const prompt = { resolved: promptOfAgent(agent, name) }
  const names = agent.tools.map((tool) => tool.name)
  for (const [index, tool] of names.entries())
    if (names.indexOf(tool) < index)
      report(at(at(at(place, 'agent'), 'tools'), index), `two tools are called "${tool}"`)
  return { prompt: undefined, resolved: toSide(given, prompt, catalog) }
}

function toSide(
  given: GivenSide,
  prompt: Pick<LoadedPrompt, 'resolved'>,
  catalog: Catalog,
): ResolvedSide {
  const { side, config, place, hooks } = given
  const stopTool = toolName(config.stopTool, { place: at(place, 'stopTool'), prompt, catalog })
  const bind = (
    field: 'sessionStop' | 'sessionFail' | 'sessionStatus',
  ): ResolvedBinding | undefined => {
    const { [field]: binding } = config
    if (!binding) return undefined
    const named = binding.isObject ? at(at(place, field), 'name') : at(place, field)
    const name = toolName(binding.name, { place: named, prompt, catalog })
    const { messageProperty, attachmentsProperty } = binding
    return name === undefined ? undefined : { name, messageProperty, attachmentsProperty }
  }
  return {
    config: given.written,
    side,
    label: config.label ?? prompt.resolved.name,
    prompt: prompt.resolved,
    agent: config.agent,
    handler: config.handler,
    hooks,
    stopOnResponse: config.stopOnResponse ?? true,
    stopTool,
    stopToolResponseProperty: config.stopToolResponseProperty,
    maxSteps: config.maxSteps ?? Infinity,
    sessionStopOnResponse: config.sessionStopOnResponse ?? false,
    sessionStop: bind('sessionStop'),
    sessionFail: bind('sessionFail'),
    sessionStatus: bind('sessionStatus'),
  }
}

/**
 * Returns the name of a tool that the side can call; reports a problem when its prompt does not list the tool.
 */
function toolName(
  reference: string | object | undefined,
  {
    place,
    prompt,
    catalog,
  }: {
    readonly place: Place
    readonly prompt: Pick<LoadedPrompt, 'resolved'>
    readonly catalog: Catalog
  },
): string | undefined {
  const name =
    typeof reference === 'object' ? catalog.tool.byObject.get(reference)?.name : reference
  if (name === undefined) return undefined
  const callable = prompt.resolved.tools
    .filter((tool) => tool.kind !== 'subagent' || !tool.relation.isResumable)
    .map((tool) => tool.name)
  if (callable.includes(name)) return name
  const message = `"${name}" is not among the tools of the prompt "${prompt.resolved.name}"`
  return report(place, `${message}${suggest(name, callable)}`)
}

/**
 * Finds the hooks of a list. Without a place, unknown names are not reported, because they were reported
 * before.
 */
export function findHooks(
  references: readonly (string | object | undefined)[] | undefined,
  place: Place | undefined,
  { hook: definitions }: Catalog,
): readonly HookDefinition[] {
  return (references ?? []).flatMap((reference, index) => {
    const entry = place
      ? findDefinition(definitions, reference, { kind: 'hook', place: at(place, index) })
      : typeof reference === 'string'
        ? definitions.byName.get(reference)
        : reference && definitions.byObject.get(reference)
    return entry ? [entry.definition as HookDefinition] : [] // its fields were already checked
  })
}
