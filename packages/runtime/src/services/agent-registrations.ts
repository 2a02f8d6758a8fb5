import type { AgentRegistered } from '@skein/threads'
import type { ResolvedAgent } from '../definitions/resolved.ts'

/** Announces the sides of an agent in the log, as turns refer to them: `<agent>/<side>`. */
export function agentRegistrations({ name, a, b }: ResolvedAgent, at: string): AgentRegistered[] {
  return [a, ...(b ? [b] : [])].map(({ side, label }) => ({
    type: 'agent_registered',
    at,
    agent: { agent_id: `${name}/${side}`, agent_name: label || name, created_at: at },
  }))
}
