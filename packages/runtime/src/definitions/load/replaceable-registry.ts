import type { Registry } from '../resolved.ts'

/** A registry whose contents can be replaced. Code that holds it uses the new contents immediately. */
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
  const union = <Value>(
    before: ReadonlyMap<string, Value>,
    now: ReadonlyMap<string, Value>,
  ): ReadonlyMap<string, Value> => new Map([...before, ...now])
  return {
    ...registry,
    previous,
    agents: union(previous.agents, registry.agents),
    tools: union(previous.tools, registry.tools),
    hooks: union(previous.hooks, registry.hooks),
    effects: union(previous.effects, registry.effects),
    agent: (name) =>
      registry.agents.has(name) || !previous.agents.has(name)
        ? registry.agent(name)
        : previous.agent(name),
  }
}
