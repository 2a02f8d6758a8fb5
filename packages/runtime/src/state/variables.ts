import type { VariablesRequested } from '../contract/event.ts'
import type { Registry, Relation, ResolvedAgent, ResolvedSide } from '../definitions/resolved.ts'
import { type KernelState, type PendingVariables, registryOf } from './kernel-state.ts'

/** Returns the requests for variables that a person can still answer. */
export function openVariables(
  { variables, terminated }: KernelState,
  now: number,
): readonly PendingVariables[] {
  if (terminated) return []
  return [...variables.values()].filter(
    ({ requested, provided, reference, error }) =>
      !provided &&
      reference === undefined &&
      error === undefined &&
      Date.parse(requested.expiresAt) > now,
  )
}

/** A kind of child (relation), with the agent and the side of the conversation that list it. */
export interface OwnedRelation {
  readonly agent: ResolvedAgent
  readonly side: ResolvedSide
  readonly relation: Relation
}

/**
 * Returns what a request for variables is about. The agent that made the request may have handed the thread over
 * since. Returns undefined if the definitions were changed and have no such child any more.
 */
export function requestedRelation(
  registry: Registry,
  state: KernelState,
  { agent: name = state.agent, side: only, relation: key }: VariablesRequested,
): OwnedRelation | undefined {
  const agent = registryOf(registry, state).agents.get(name)
  for (const side of [agent?.a, agent?.b])
    for (const tool of side?.prompt.tools ?? [])
      if (agent && side && tool.kind === 'subagent' && tool.relation.key === key)
        if (only === undefined || only === side.side)
          return { agent, side, relation: tool.relation }
  return undefined
}
