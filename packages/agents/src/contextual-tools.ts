import { withToolContext, type Tool } from '@skein/ai'
import type { ExecutionContext } from './execution.ts'
import type { SubagentSink } from './subagent-sink.ts'
import type { AgentContext } from './tool-context.ts'

/**
 * Tools that bring the agent's context along (UAP §8.4), for strategies that let `llm` run them. The
 * same list if no tool asks for a context.
 */
export function contextualTools(
  { agent, tools, state, sessionId, parentContext }: ExecutionContext,
  streaming: boolean,
  sink: SubagentSink,
): readonly Tool[] {
  if (!tools.some(wantsContext)) return tools
  const contextOf = (toolCallId: string): Partial<AgentContext> => ({
    parentModel: agent.model,
    ...(agent.config && { parentConfig: agent.config }),
    agentId: agent.id,
    stateId: state.id,
    ...(sessionId !== undefined && { sessionId }),
    ...(parentContext && { parentContext }),
    step: state.step,
    streaming,
    idempotencyKey: `${sessionId ?? state.id}:${toolCallId}`,
    onSubagentEvent: sink.push,
    shouldStop: async () => false,
  })
  return tools.map((tool) => (wantsContext(tool) ? bringing(tool, contextOf) : tool))
}

function bringing(tool: Tool, contextOf: (toolCallId: string) => object): Tool {
  const run = (params: never, given: { readonly toolCallId: string }): unknown =>
    tool.run(params, { ...contextOf(given.toolCallId), ...given } as never)
  return withToolContext(
    Object.create(Object.getPrototypeOf(tool) as object | null, {
      ...Object.getOwnPropertyDescriptors(tool),
      run: { value: run, enumerable: true },
    }) as Tool, // Object.create does not carry the type
  )
}

const marker = Symbol.for('skein.tool-context')

function wantsContext(tool: Tool): boolean {
  return tool.run.length >= 2 || marker in tool
}
