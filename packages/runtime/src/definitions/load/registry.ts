import { isPlainObject } from '@skein/base'
import { gather, type Catalog } from './gather.ts'
import type { ListedDefinition } from './references.ts'
import type { Reads } from './definition-index.ts'
import { checkGraph } from './graph.ts'
import { fillHashes } from './definition-hashes.ts'
import { fillRequiredVariables } from './required-variables.ts'
import { checkBudgets } from './check-budgets.ts'
import { fillModels, type PriceSource } from './prices.ts'
import { at, flag, kindOf, report, suggest, type Place } from './readers.ts'
import {
  DEFAULT_SESSION_TURNS,
  findHooks,
  resolveAgent,
  type LoadedAgent,
} from './resolve-agent.ts'
import { checkFallbacks, resolvePrompts } from './resolve-prompt.ts'
import { checkUses } from './resolve-tools.ts'
import { RuntimeError } from '../../contract/error.ts'
import { isUndeclared } from '../define-tool.ts'
import { DefinitionError, type Problem } from '../definition-error.ts'
import type { Registry } from '../resolved.ts'
import type { AgentDefinition } from '../agent-definition.ts'
import type { AnyTool, ToolDefinition } from '../tool-definition.ts'
import type { EffectDefinition } from '../effect-definition.ts'
import type { EndpointDefinition } from '../endpoint-definition.ts'
import type { HookDefinition } from '../hook-definition.ts'
import type { ModelDefinition } from '../model-definition.ts'
import type { PromptDefinition } from '../prompt-definition.ts'

/** The definitions to load. Definitions that an agent contains as objects, not by name, need not be listed. */
export interface RegistryOptions {
  readonly agents: readonly AgentDefinition[]
  /**
   * Tools that other definitions refer to by name; `prompts`, `models` and `hooks` are listed for the same
   * reason.
   */
  readonly tools?: readonly AnyTool[]
  readonly prompts?: readonly PromptDefinition[]
  readonly models?: readonly ModelDefinition[]
  readonly hooks?: readonly HookDefinition[]
  readonly effects?: readonly EffectDefinition[]
  readonly endpoints?: readonly EndpointDefinition[]
  /** Prices of models whose definitions do not state them; needed for budgets in US dollars. */
  readonly prices?: PriceSource
  /** Whether warnings are treated as problems. Default false. */
  readonly strict?: boolean
}

/**
 * Finds and checks all definitions; throws one `DefinitionError` that names every problem.
 *
 *     const registry = createRegistry({ agents: [support] })
 */
export function createRegistry(options: RegistryOptions): Registry {
  const problems: Problem[] = []
  const listedDefinitions = foundIn(options, problems)
  const { prices, strict } = options ?? {}
  return loadRegistry(listedDefinitions, { problems, prices, isStrict: strict === true })
}

/** Loads unchecked definitions into a registry; shared by `createRegistry` and `discover`. */
export function loadRegistry(
  found: readonly ListedDefinition[],
  given: {
    /** Problems that were found earlier; they are thrown together with the problems found here. */
    readonly problems: Problem[]
    readonly files?: ReadonlyMap<unknown, string>
    readonly prices?: PriceSource
    readonly isStrict?: boolean
  },
): Registry {
  const { problems, files = new Map<unknown, string>(), prices, isStrict = false } = given
  const warnings: Problem[] = isStrict ? problems : []
  const catalog = gather(found, files, problems)
  const contents = resolveAll(catalog, warnings)
  fillModels(contents, prices)
  checkBudgets(contents)
  if (problems.length > 0) throw new DefinitionError(problems)
  const agents = new Map(
    contents.flatMap(({ resolved }) => (resolved ? [[resolved.name, resolved]] : [])),
  )
  fillRequiredVariables(agents)
  fillHashes(agents)
  return Object.freeze({
    agents,
    tools: definitions<ToolDefinition>(catalog.tool),
    hooks: definitions<HookDefinition>(catalog.hook),
    effects: definitions<EffectDefinition>(catalog.effect),
    endpoints: Object.freeze([...definitions<EndpointDefinition>(catalog.endpoint).values()]),
    warnings: Object.freeze([...warnings]),
    agent(name: string) {
      const agent = agents.get(name)
      if (agent) return agent
      const names = [...agents.keys()]
      const message = `There is no agent "${name}"${suggest(String(name), names)}`
      throw new RuntimeError(message.endsWith('?') ? message : `${message}.`, {
        code: 'AGENT_NOT_FOUND',
        hint: names.length > 0 ? `Agents: ${names.join(', ')}.` : 'No agent is defined.',
      })
    },
  })
}

const kinds: { readonly [Key in keyof Omit<RegistryOptions, 'strict' | 'prices'>]-?: keyof Reads } =
  {
    agents: 'agent',
    tools: 'tool',
    prompts: 'prompt',
    models: 'model',
    hooks: 'hook',
    effects: 'effect',
    endpoints: 'endpoint',
  }

function foundIn(options: unknown, problems: Problem[]): ListedDefinition[] {
  const place: Place = { subject: 'registry', file: undefined, field: '', problems }
  if (!isPlainObject(options)) {
    report(place, `must be given { agents, … }, not ${kindOf(options)}`)
    return []
  }
  if (options['agents'] === undefined) report(at(place, 'agents'), 'is required')
  if (options['strict'] !== undefined) flag(options['strict'], at(place, 'strict'))
  const { prices } = options
  if (prices !== undefined && typeof prices !== 'function' && !isPlainObject(prices))
    report(at(place, 'prices'), `must be a table or a function, not ${kindOf(prices)}`)
  return Object.entries(options).flatMap(([key, value]) => {
    if (value === undefined || key === 'strict' || key === 'prices') return []
    const kind = kinds[key as keyof typeof kinds]
    const here = at(place, key)
    if (!Object.hasOwn(kinds, key)) {
      report(here, `is not a known field${suggest(key, Object.keys(kinds))}`)
    } else if (!Array.isArray(value)) {
      report(here, `must be a list, not ${kindOf(value)}`)
    } else {
      return Array.from(value, (item: unknown, index) => ({
        kind,
        value: item,
        from: `${key}[${index}]`,
      }))
    }
    return []
  })
}

/** Names of tools that the runtime itself adds. */
const ownTools: ReadonlySet<string> = new Set([
  'subagent_create',
  'subagent_message',
  'subagent_list',
])

function resolveAll(catalog: Catalog, warnings: Problem[]): readonly LoadedAgent[] {
  for (const entry of catalog.model.all) checkFallbacks(entry, catalog)
  for (const entry of catalog.tool.all) checkUses(entry, catalog)
  for (const { definition, name, place } of catalog.tool.all)
    if (isUndeclared(definition))
      report(
        at({ ...place, problems: warnings }, 'risk'),
        `should be declared for a tool of an MCP server; without it a person approves each call: mcpTools(client, { risk: ({ name }) => (name === '${name}' ? 'read_only' : undefined) })`,
      )
  for (const { name, place } of [...catalog.tool.all, ...catalog.agent.all]) {
    if (name !== undefined && ownTools.has(name)) {
      report(at(place, 'name'), `"${name}" is reserved for a tool of the runtime`)
    }
  }
  const prompts = resolvePrompts(catalog)
  for (const { read, place } of prompts.keys()) findHooks(read.hooks, at(place, 'hooks'), catalog)
  const agents = catalog.agent.all.map((entry) => resolveAgent(entry, catalog, prompts))
  checkGraph(agents, [...prompts.values()])
  for (const { entry, type } of agents) {
    // Two models may talk to each other for very long, so a missing limit is a warning.
    const { maxSessionTurns } = entry.definition as { readonly maxSessionTurns?: unknown }
    if (type !== 'dual_ai' || maxSessionTurns !== undefined) continue
    const place = at({ ...entry.place, problems: warnings }, 'maxSessionTurns')
    report(place, `should be set for dual_ai; a session fails after ${DEFAULT_SESSION_TURNS} turns`)
  }
  return agents
}

function definitions<Definition>(index: Catalog[keyof Catalog]): ReadonlyMap<string, Definition> {
  // No problems were found, so every definition has the type that its reader returns.
  return new Map(
    [...index.byName].map(([name, { definition }]) => [name, definition as Definition]),
  )
}
