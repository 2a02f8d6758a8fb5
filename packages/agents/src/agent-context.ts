import type { ToolCall } from '@skein/ai'
import type { ExecutionContext } from './execution.ts'
import type { AgentContext } from './tool-context.ts'

/** Of the run, beside what its execution context says. */
interface RunFacts extends Pick<AgentContext, 'step' | 'streaming' | 'shouldStop'> {
  /** What keeps calls of different runs apart: the session, or the state the run began with. */
  readonly root: string
}

/** UAP §8.4, §8.7: what a tool that takes a second parameter learns about its caller. */
export function agentContext(
  { agent, state, sessionId, parentContext }: ExecutionContext,
  { toolCallId }: Pick<ToolCall, 'toolCallId'>,
  { root, ...facts }: RunFacts,
): Partial<AgentContext> {
  return {
    parentModel: agent.model,
    ...(agent.config && { parentConfig: agent.config }),
    agentId: agent.id,
    stateId: state.id,
    ...(sessionId !== undefined && { sessionId }),
    ...(parentContext && { parentContext }),
    ...facts,
    idempotencyKey: `${root}:${toolCallId}`,
  }
}
