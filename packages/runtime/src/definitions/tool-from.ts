import type { JsonValue } from '@skein/base'
import { isDeferred, type Tool } from '@skein/ai'
import { RuntimeError } from '../error.ts'
import type {
  Ref,
  RuntimeToolContext,
  ToolDefinition,
  ToolGovernance,
  VariableDefinition,
} from './types.ts'

/** What a tool from elsewhere lacks: its risk, and what else the runtime may know of it. */
export interface ToolFromOptions<Args, Result> extends ToolGovernance<Args, Result> {
  readonly variables?: readonly VariableDefinition[]
  readonly uses?: readonly Ref<ToolDefinition>[]
}

/** Types that some tools carry without a value. */
interface Typed<Args, Result> {
  readonly '~types'?: { readonly args: Args; readonly result: Result }
}

/**
 * Makes a tool of the runtime out of any UPP tool: one of `tool()`, of an MCP server, or hand-written.
 *
 *     toolFrom(searchTool, { risk: 'read_only' })
 */
export function toolFrom<Args, Result>(
  tool: Tool & Typed<Args, Result>,
  options: ToolFromOptions<NoInfer<Args>, NoInfer<Result>>,
): ToolDefinition {
  const { variables, uses, ...governance } = options
  const timeoutMs = governance.timeoutMs ?? tool.timeoutMs
  const definition = {
    kind: 'tool' as const,
    name: tool.name,
    description: tool.description,
    parameters: tool.parameters,
    run: (params: JsonValue, context: RuntimeToolContext) => runTool(tool, params, context),
    governance: Object.freeze({ ...governance, ...(timeoutMs !== undefined && { timeoutMs }) }),
    ...(variables && { variables: Object.freeze([...variables]) }),
    ...(uses && { uses: Object.freeze([...uses]) }),
    ...(timeoutMs !== undefined && { timeoutMs }),
  }
  // Arguments are JSON of unknown shape here; the tool's own `run` checks them.
  return Object.freeze(definition) as unknown as ToolDefinition
}

type Callable = (params: JsonValue, context?: RuntimeToolContext) => unknown

async function runTool(
  tool: Tool,
  params: JsonValue,
  context: RuntimeToolContext,
): Promise<unknown> {
  // UPP types arguments as `never`, since any tool may narrow them.
  const approval = tool.approval as Callable | undefined
  const verdict = await approval?.(params, context)
  if (isDeferred(verdict)) {
    throw new RuntimeError(`The tool "${tool.name}" wants to be approved by its own means.`, {
      code: 'TOOL_NOT_ALLOWED',
      hint: 'Leave out its approval and let a policy ask for review.',
    })
  }
  if (verdict === false) {
    throw new RuntimeError(`The call of "${tool.name}" was denied.`, { code: 'TOOL_NOT_ALLOWED' })
  }
  const callable = tool as unknown as { readonly run: Callable }
  return wantsContext(tool) ? callable.run(params, context) : callable.run(params)
}

/** UAP §8.4: two declared parameters, or the mark of `withToolContext`. */
function wantsContext(tool: Tool): boolean {
  return tool.run.length >= 2 || Symbol.for('skein.tool-context') in tool
}
