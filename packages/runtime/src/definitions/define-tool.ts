import { isDeferred, type Tool, type ToolSchema } from '@skein/ai'
import type { EvidenceClaim } from '@skein/governance'
import type { ThreadState } from '../thread-state.ts'
import { checkedArguments, type CheckedArguments } from './checked-arguments.ts'
import { frozenCopy } from './define.ts'
import type {
  Ref,
  RuntimeToolContext,
  ToolDefinition,
  ToolGovernance,
  VariableDefinition,
} from './types.ts'
import type { JsonValue } from '@skein/base'
import { RuntimeError } from '../error.ts'

/** What `defineTool` makes a tool of. */
export interface ToolOptions<Args, Result> extends Omit<
  ToolGovernance<NoInfer<Args>, NoInfer<Result>>,
  'evidence'
> {
  readonly name: string
  readonly description: string
  /** Any Standard Schema; absent for a tool without arguments. */
  readonly args?: ToolSchema<Args>
  readonly evidence?: (result: NoInfer<Result>, args: NoInfer<Args>) => EvidenceClaim
  readonly variables?: readonly VariableDefinition[]
  /** The only tools it may invoke. */
  readonly uses?: readonly Ref<ToolDefinition>[]
  /** Absent for a tool that runs at the client: its calls wait for a result. */
  readonly execute?: (
    state: ThreadState,
    args: NoInfer<Args>,
    context: RuntimeToolContext,
  ) => Result | Promise<Result>
}

/** Arguments of a tool that has none. */
export type NoArguments = Readonly<Record<string, never>>

/**
 * Defines a tool. Its arguments are checked in its own `run`, before `execute` sees them.
 *
 *     const findOrder = defineTool({
 *       name: 'find_order',
 *       description: 'Looks up an order by its number.',
 *       args: z.object({ number: z.string() }),
 *       risk: 'read_only',
 *       execute: (state, { number }) => orders.find(number),
 *     })
 */
export function defineTool<Args = NoArguments, Result = unknown>(
  options: ToolOptions<Args, Result>,
): ToolDefinition {
  const { args, execute, risk, raise, rollback, probe, idempotent, evidence, ...rest } = options
  const checked = checkedArguments({ kind: 'tool', name: options.name }, args)
  const { timeoutMs } = rest
  const run = (params: unknown, context: RuntimeToolContext): Promise<Result> =>
    checked.check(params).then((valid) => execute?.(context.state, valid, context) as Result)
  const definition = {
    ...frozenCopy(rest),
    kind: 'tool' as const,
    parameters: checked.parameters,
    ...(execute !== undefined && { run: typeof execute === 'function' ? run : execute }),
    governance: Object.freeze({
      risk,
      ...(idempotent !== undefined && { idempotent }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...checkedCallbacks<Args, Result>(checked, { risk, raise, rollback, probe, evidence }),
    }),
  }
  // Callbacks that are no functions are kept as they are: loading names them with all else.
  return Object.freeze(definition) as unknown as ToolDefinition
}

type Callbacks<Args, Result> = {
  readonly [Key in 'risk' | 'raise' | 'rollback' | 'probe' | 'evidence']:
    ToolOptions<Args, Result>[Key] | undefined
}

/** Governance's callbacks are handed what the model sent; these check it first, as `run` does. */
function checkedCallbacks<Args, Result>(
  { check, checkNow }: CheckedArguments<Args>,
  { risk, raise, rollback, probe, evidence }: Callbacks<Args, Result>,
): object {
  const wrapped: Record<string, unknown> = { raise, rollback, probe, evidence }
  if (typeof raise === 'function') {
    // Invalid arguments raise nothing: `run` refuses them before anything happens.
    wrapped['raise'] = (params: unknown) => {
      const valid = checkNow(params)
      return valid ? raise(valid.value) : risk
    }
  }
  if (typeof rollback === 'function') {
    wrapped['rollback'] = async (params: unknown, context: Parameters<typeof rollback>[1]) =>
      rollback(await check(params), context)
  }
  if (typeof probe === 'function') {
    wrapped['probe'] = async (params: unknown, context: Parameters<typeof probe>[1]) =>
      probe(await check(params), context)
  }
  if (typeof evidence === 'function') {
    // The call has run, so its arguments were valid.
    wrapped['evidence'] = (result: Result, params: unknown) =>
      evidence(result, (checkNow(params) as { value: Args }).value)
  }
  return Object.fromEntries(Object.entries(wrapped).filter(([, value]) => value !== undefined))
}

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
