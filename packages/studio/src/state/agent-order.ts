import type { AgentSummary } from '@skein/server/client'

/** An agent, with the titles of the agents that call it as a tool. */
export type OrderedAgent = AgentSummary & { readonly calledBy: readonly string[] }

/** The order in which agents are listed everywhere: those that people talk to, then those that other agents call. */
export function inOrder(agents: readonly AgentSummary[]): readonly OrderedAgent[] {
  const ordered = agents.map((agent) => ({
    ...agent,
    calledBy: agents
      .filter((caller) => caller !== agent && callsAgent(caller, agent.name))
      .map(({ title, name }) => title ?? name),
  }))
  return ordered.toSorted((a, b) => Number(a.calledBy.length > 0) - Number(b.calledBy.length > 0))
}

function callsAgent({ sides }: AgentSummary, name: string): boolean {
  return sides.some(({ tools }) => tools.some((tool) => tool.name === name))
}
