import type { Registry } from './resolved.ts'

/** A registry whose contents can be replaced; whoever holds it sees the new ones at once. */
export interface ReplaceableRegistry extends Registry {
  replace(registry: Registry): void
}

export function replaceableRegistry(first: Registry): ReplaceableRegistry {
  let current = first
  return {
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
    agent: (name) => current.agent(name),
    replace(registry) {
      current = registry
    },
  }
}
