import type { Admission } from '@skein/governance'
import type { DrainContext } from '../context/drain-context.ts'
import { findDelegates } from '../governance/delegates.ts'
import { messageText } from '../state/step-decision.ts'
import { checksAnswers, type Registry, type ResolvedAgent } from '../definitions/resolved.ts'
import type { ToolDefinition } from '../definitions/tool-definition.ts'
import type { GovernedSession, SessionGovernor } from '../governance/session-governor.ts'

/**
 * Opens the governor of the running session, which judges its calls. It begins a new governed request, or
 * continues the request that the audit log already has.
 */
export function openGovernor(context: GovernedPlace): Promise<SessionGovernor> {
  const { head, state, environment } = context
  const { store, registry } = environment
  const first = state.entries[state.session?.firstEntry ?? 0]
  const query = { store, agents: registry.agents, tree: head.rootId }
  return environment.governors.open({
    ...governedSession(context),
    input: first ? messageText(first) : '',
    delegates: async (request) =>
      checksAnswers(context.agent) && context.state.children.size > 0
        ? findDelegates(query, request)
        : [],
    hasGrants: () => context.state.grants.size > 0,
  })
}

type GovernedPlace = Pick<DrainContext, 'agent' | 'head' | 'state' | 'environment' | 'commit'>

/** Describes the session of a thread for the governor: the running one or, if there is none, the last one. */
export function governedSession(context: GovernedPlace): GovernedSession {
  const { agent, head, state, environment } = context
  const { registry } = environment
  return {
    threadId: head.id,
    rootId: head.rootId,
    tenant: head.tenant,
    owner: head.owner,
    agent,
    sessionId: state.session?.id ?? state.lastSession?.id ?? head.id,
    input: '',
    tools: governedTools(registry, agent),
    callers: state.session?.callers,
    toolsOf: (one) => governedTools(registry, one),
    commit: (writes) => context.commit('undo', { governance: writes }),
  }
}

/** Returns the tools of an agent that a governor judges. */
function governedTools(registry: Registry, agent: ResolvedAgent): readonly ToolDefinition[] {
  const tools = new Map<string, ToolDefinition>()
  for (const side of [agent.a, agent.b])
    for (const tool of side?.prompt.tools ?? [])
      if (tool.kind === 'tool' && tool.tool.run) tools.set(tool.name, tool.tool)
  // A rollback may name a tool that no prompt lists, so all registered tools are added.
  for (const [name, tool] of registry.tools) if (tool.run && !tools.has(name)) tools.set(name, tool)
  return [...tools.values()]
}

/**
 * Returns what the governor would answer to a call that is not in the log yet: the same judgement, with a
 * governor whose records are dropped. `state` must be one in which the message already contains the call.
 */
export async function foreseeAdmission(
  place: Pick<DrainContext, 'agent' | 'head' | 'state' | 'environment'>,
  call: Parameters<SessionGovernor['admit']>[0],
): Promise<Admission> {
  const commit = () => Promise.reject(new Error('A preview writes nothing.'))
  return (await openGovernor({ ...place, commit })).admit(call)
}
