import { withToolContext, type Tool, type ToolContext } from '@skein/ai'
import { agentContext } from './agent-context.ts'
import type { ExecutionContext } from './execution.ts'
import type { SubagentSink } from './subagent-sink.ts'

/**
 * Tools that bring the agent's context along (UAP §8.4), for strategies that let `llm` run them. The
 * same list if no tool asks for a context.
 */
export function contextualTools(
  context: ExecutionContext,
  streaming: boolean,
  sink: SubagentSink,
): readonly Tool[] {
  const { tools, state, sessionId } = context
  if (!tools.some(wantsContext)) return tools
  const facts = {
    step: state.step,
    streaming,
    root: sessionId ?? state.id,
    shouldStop: async () => false,
  }
  const contextOf = (call: ToolContext): object => ({
    ...agentContext(context, call, facts),
    onSubagentEvent: sink.push,
    ...call,
  })
  return tools.map((tool) => (wantsContext(tool) ? bringing(tool, contextOf) : tool))
}

function bringing(tool: Tool, contextOf: (given: ToolContext) => object): Tool {
  const run = (params: never, given: ToolContext): unknown =>
    tool.run(params, contextOf(given) as never) // Tool hides the type of its context
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
