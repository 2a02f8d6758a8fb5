import type { JsonValue } from '@skein/base'
import type { ToolDefinition } from '../definitions/types.ts'
import type { SessionGovernor } from '../governance/session-governor.ts'
import type { DrainContext } from '../context.ts'
import { textOf } from '../session/decide.ts'

/** The gates of the running session: a new request of the governor, or the one its audit log has. */
export function openGovernor(context: DrainContext): Promise<SessionGovernor> {
  const { agent, head, state, environment } = context
  return environment.governors.open({
    threadId: head.id,
    rootId: head.rootId,
    tenant: head.tenant,
    owner: head.owner,
    agent,
    sessionId: state.session?.id ?? state.lastSession?.id ?? head.id,
    input: inputOf(context),
    tools: toolsOf(context),
    commit: (writes) => context.commit('undo', { governance: writes }),
  })
}

/** What started the session. */
function inputOf({ state }: DrainContext): JsonValue {
  const first = state.entries[state.session?.firstEntry ?? 0]
  return first ? textOf(first) : ''
}

function toolsOf({ agent, environment }: DrainContext): readonly ToolDefinition[] {
  const found = new Map<string, ToolDefinition>()
  for (const side of [agent.a, agent.b])
    for (const tool of side?.prompt.tools ?? [])
      if (tool.kind === 'tool' && tool.tool.run) found.set(tool.name, tool.tool)
  // Inverses may be tools that no prompt lists.
  for (const [name, tool] of environment.registry.tools)
    if (tool.run && !found.has(name)) found.set(name, tool)
  return [...found.values()]
}
