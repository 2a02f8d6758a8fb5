import { isPlainObject } from '@skein/base'
import { RuntimeError } from '../../contract/error.ts'
import { isUndeclared } from '../define-tool.ts'
import { DefinitionError, type Problem, type Registry } from '../resolved.ts'
import { checkGraph, fillHashes, fillRequiredVariables } from './graph.ts'
import { type Catalog, type Found, gather, type Reads } from './gather.ts'
import { at, flag, kindOf, type Place, report, suggest } from './readers.ts'
import {
  DEFAULT_SESSION_TURNS,
  findHooks,
  type LoadedAgent,
  resolveAgent,
} from './resolve-agent.ts'
import { checkBudgets, fillModels, type PriceSource } from './prices.ts'
import { checkFallbacks, resolvePrompts } from './resolve-prompt.ts'
import { checkUses } from './resolve-tools.ts'
import type {
  AgentDefinition,
  AnyTool,
  EffectDefinition,
  EndpointDefinition,
  HookDefinition,
  ModelDefinition,
  PromptDefinition,
  ToolDefinition,
} from '../types.ts'

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
  const found = foundIn(options, problems)
  const { prices, strict } = options ?? {}
  return loadRegistry(found, { problems, prices, isStrict: strict === true })
}

/** Loads unchecked definitions into a registry; shared by `createRegistry` and `discover`. */
export function loadRegistry(
  found: readonly Found[],
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
  const loaded = resolveAll(catalog, warnings)
  fillModels(loaded, prices)
  checkBudgets(loaded)
  if (problems.length > 0) throw new DefinitionError(problems)
  const agents = new Map(
    loaded.flatMap(({ resolved }) => (resolved ? [[resolved.name, resolved]] : [])),
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
      const said = `There is no agent "${name}"${suggest(String(name), names)}`
      throw new RuntimeError(said.endsWith('?') ? said : `${said}.`, {
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

function foundIn(options: unknown, problems: Problem[]): Found[] {
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
const reserved: ReadonlySet<string> = new Set([
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
    if (name !== undefined && reserved.has(name)) {
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

function definitions<Definition>(shelf: Catalog[keyof Catalog]): ReadonlyMap<string, Definition> {
  // No problems were found, so every definition has the type that its reader returns.
  return new Map(
    [...shelf.byName].map(([name, { definition }]) => [name, definition as Definition]),
  )
}

/** A registry whose contents can be replaced. Code that holds it uses the new contents at once. */
export interface ReplaceableRegistry extends Registry {
  replace(registry: Registry): void
}

/** Wraps a registry so that its contents can be replaced. */
export function replaceableRegistry(first: Registry, previous?: Registry): ReplaceableRegistry {
  let current = previous ? withPrevious(first, previous) : first
  return {
    previous,
    get agents() {
      return current.agents
    },
    get tools() {
      return current.tools
    },
    get hooks() {
      return current.hooks
    },
    get effects() {
      return current.effects
    },
    get endpoints() {
      return current.endpoints
    },
    get warnings() {
      return current.warnings
    },
    get problems() {
      return current.problems
    },
    agent: (name) => current.agent(name),
    replace(registry) {
      current = previous ? withPrevious(registry, previous) : registry
    },
  }
}

/** Adds the definitions that only the previous version has, because sessions that began with it may need them. */
function withPrevious(registry: Registry, previous: Registry): Registry {
  const joined = <Value>(
    before: ReadonlyMap<string, Value>,
    now: ReadonlyMap<string, Value>,
  ): ReadonlyMap<string, Value> => new Map([...before, ...now])
  return {
    ...registry,
    previous,
    agents: joined(previous.agents, registry.agents),
    tools: joined(previous.tools, registry.tools),
    hooks: joined(previous.hooks, registry.hooks),
    effects: joined(previous.effects, registry.effects),
    agent: (name) =>
      registry.agents.has(name) || !previous.agents.has(name)
        ? registry.agent(name)
        : previous.agent(name),
  }
}
