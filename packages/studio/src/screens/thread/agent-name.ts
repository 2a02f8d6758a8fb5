import type { ShownThread } from '../../state/tree.ts'

export function isSideB(agentId: string | undefined, { facts }: ShownThread): boolean {
  return agentId !== undefined && agentId.endsWith('/b') && facts.agents.has(agentId)
}

export function agentName(agentId: string | undefined, { facts, view }: ShownThread): string {
  if (agentId === undefined) return view.agent
  return facts.agents.get(agentId) ?? agentId.replace(/\/[ab]$/, '')
}
