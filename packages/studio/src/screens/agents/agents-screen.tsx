import type { ReactNode } from 'react'

/** All agents. */
export function AgentsScreen(): ReactNode {
  return <div className="page" />
}

/** One agent. */
export function AgentScreen({ agent }: { readonly agent: string }): ReactNode {
  return <div className="page">{agent}</div>
}
