import { argumentParserMember, argumentParserOf, isPlainObject, type JsonValue } from '@skein/base'
import { isDeferred, isDenied, type Tool, type ToolContext, type ToolSchema } from '@skein/ai'
import { type EvidenceClaim, type Risk, toolCore } from '@skein/governance'
import { RuntimeError } from '../contract/error.ts'
import type { ThreadState } from '../contract/thread-state.ts'
import { frozenDefinition } from './frozen-definition.ts'
import { definedArguments } from './defined-arguments.ts'
import { checkParameterOrder } from './parameter-order.ts'
import { DefinitionError } from './definition-error.ts'
import type {
  AnyTool,
  RuntimeToolContext,
  ToolDefinition,
  ToolGovernance,
} from './tool-definition.ts'
import type { Ref } from './agent-definition.ts'
import type { VariableDefinition } from './prompt-definition.ts'

/** The options of `defineTool`, in the spelling of Standard Agents (§5). */
export interface ToolOptions<Args, Result> extends Omit<
  ToolGovernance<NoInfer<Args>, NoInfer<Result>>,
  'evidence'
> {
  readonly name: string
  readonly description: string
  /** Any Standard Schema; omit it for a tool without arguments. */
  readonly args?: ToolSchema<Args>
  /** Returns the evidence that a call provides. Default: a `tool_result` with the result itself. */
  readonly evidence?: (result: NoInfer<Result>, args: NoInfer<Args>) => EvidenceClaim
  /** Variables of the thread that the tool reads. */
  readonly variables?: readonly VariableDefinition[]
  /** The only tools that this tool may invoke. */
  readonly uses?: readonly Ref<AnyTool>[]
  /** Runs the tool. Omit it for a tool that runs at the client: its calls then wait for a result. */
  readonly execute?: (
    state: ThreadState,
    args: NoInfer<Args>,
    context: RuntimeToolContext,
  ) => Result | Promise<Result>
}

/**
 * Lets the compiler require of a high-risk tool that runs in this process that it says how a call is undone
 * (`rollback`). Loading checks the same for definitions that no compiler has seen.
 */
type Undoable =
  | { readonly risk: 'read_only' | 'write_low_risk' }
  | { readonly risk: 'write_high_risk'; readonly rollback: NonNullable<unknown> }

const threadTool = Symbol.for('skein.thread-tool')

/** The type of the arguments of a tool without arguments. */
export type NoArguments = Readonly<Record<string, never>>

/**
 * A tool that runs in this process, in a thread. `llm()` and `agent()` have no threads and refuse it; a tool for them
 * is made with `tool()` of `@skein/ai`, which the runtime accepts too. `governed()` takes both; outside a thread, a
 * tool that uses the thread's state fails with `TOOL_NOT_ALLOWED`.
 */
export interface RunnableTool<Args = never, Result = unknown> extends ToolDefinition {
  readonly run: (params: unknown, context: ToolContext) => Promise<Result>
  /** Never set; wrappers such as `governed()` read the types from it. */
  readonly '~types'?: { readonly args: Args; readonly result: Result }
}

/**
 * Defines a tool. Its arguments are parsed once, before anything judges a call: policy, approver, log, `raise`,
 * `rollback`, `probe`, `evidence` and `execute` all get the value that the schema makes. A direct call of `run` parses
 * them first.
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
  options: ToolOptions<Args, Result> &
    Undoable & { readonly execute: NonNullable<ToolOptions<Args, Result>['execute']> },
): RunnableTool<Args, Result>
export function defineTool<Args = NoArguments, Result = unknown>(
  options: ToolOptions<Args, Result> & (Undoable | { readonly execute?: undefined }),
): ToolDefinition
export function defineTool<Args = NoArguments, Result = unknown>(
  options: ToolOptions<Args, Result>,
): ToolDefinition {
  const { args, execute, risk, raise, rollback, probe, idempotent, evidence, ...rest } = options
  const { name, timeoutMs } = rest
  refuseOptionsOfTool(name, rest)
  const { parameters, parser, read } = definedArguments({ kind: 'tool', name }, args)
  checkParameterOrder({ name, execute, parameters })
  const run = async (params: unknown, context: ToolContext): Promise<Result> => {
    const valid = await read(params, context)
    const full = threadContext(name, context)
    return (await execute?.(full.state, valid, full)) as Result
  }
  const governance = { risk, idempotent, timeoutMs, raise, rollback, probe, evidence }
  const definition: Record<string, unknown> = {
    ...frozenDefinition(rest),
    ...argumentParserMember(parser),
    kind: 'tool',
    risk,
    ...(idempotent !== undefined && { idempotent }),
    parameters,
    governance: Object.freeze(withoutUndefined(governance)),
  }
  // `llm()` and `agent()` recognise a tool that needs a thread by this symbol, which no spread copies.
  Object.defineProperty(definition, threadTool, { value: true })
  // A value that is not a function is kept, so that loading reports it together with all other problems.
  const runs = Object.assign(run, argumentParserMember(parser))
  if (execute !== undefined) definition['run'] = typeof execute === 'function' ? runs : execute
  return Object.freeze(definition) as unknown as ToolDefinition // built field by field above
}

/** The options of `tool()` that loading cannot tell from what `defineTool` makes of its own. */
const optionsOfTool = {
  parameters: 'write args',
  run: 'write execute: (state, args) => …',
}

function refuseOptionsOfTool(name: string, options: object): void {
  const problems = Object.entries(optionsOfTool)
    .filter(([field]) => Object.hasOwn(options, field))
    .map(([field, cure]) => ({
      subject: `tool "${name}"`,
      field,
      message: `is an option of tool(); ${cure}`,
    }))
  if (problems.length > 0) throw new DefinitionError(problems)
}

function withoutUndefined(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))
}

/**
 * Returns the context of a call; creates one for calls that `llm()`, `agent()` or a governor makes outside a
 * thread.
 */
function threadContext(toolName: string, context: ToolContext): RuntimeToolContext {
  if ('state' in context && context.state) return context as RuntimeToolContext
  const { toolCallId, idempotencyKey = toolCallId } = context as Partial<RuntimeToolContext>
  const state = new Proxy({} as ThreadState, {
    get() {
      throw new RuntimeError(`"${toolName}" uses the state of its thread, but runs without one.`, {
        code: 'TOOL_NOT_ALLOWED',
        hint: 'Only a runtime runs tools in a thread; in llm() and agent() a tool has no ThreadState.',
      })
    },
  })
  return { ...context, toolName, idempotencyKey: idempotencyKey ?? '', state }
}

/** The settings that a tool of another package lacks: its risk, and others that the runtime uses. */
export interface ToolFromOptions<Args, Result> extends ToolGovernance<Args, Result> {
  /** Variables of the thread that the tool reads. */
  readonly variables?: readonly VariableDefinition[]
  /** The only tools that this tool may invoke. */
  readonly uses?: readonly Ref<AnyTool>[]
}

/** A field that some tools declare only for its types; it never has a value. */
interface Typed<Args, Result> {
  readonly '~types'?: { readonly args: Args; readonly result: Result }
}

/**
 * Adds governance, variables or uses to any `Tool`: one of `tool()`, of an MCP server, or hand-written.
 * A tool that needs none of them can be listed as it is.
 *
 *     toolFrom(searchTool, { risk: 'read_only' })
 */
export function toolFrom<Args, Result>(
  tool: Tool & Typed<Args, Result>,
  options: ToolFromOptions<NoInfer<Args>, NoInfer<Result>> & Undoable,
): RunnableTool<Args, Result> {
  const { variables, uses, ...governance } = options
  const { name, description, parameters } = tool
  const timeoutMs = governance.timeoutMs ?? tool.timeoutMs
  const definition = {
    ...argumentParserMember(argumentParserOf(tool)),
    kind: 'tool' as const,
    name,
    description,
    parameters,
    risk: governance.risk,
    run: (params: JsonValue, context: RuntimeToolContext) => runTool(tool, params, context),
    governance: Object.freeze({ ...governance, timeoutMs }),
    variables: variables && Object.freeze([...variables]),
    uses: uses && Object.freeze([...uses]),
    timeoutMs,
  }
  // The arguments have an unknown type here; the tool's own parse phase checks them.
  return Object.freeze(definition) as unknown as RunnableTool<Args, Result>
}

type Callable = (params: JsonValue, context?: RuntimeToolContext) => unknown

async function runTool(
  tool: Tool,
  params: JsonValue,
  context: RuntimeToolContext,
): Promise<unknown> {
  // The type `Tool` declares arguments as `never`, because each tool may narrow them.
  const { approval, run } = tool as unknown as {
    readonly approval?: Callable
    readonly run: Callable
  }
  const verdict = await approval?.call(tool, params, context)
  if (isDeferred(verdict)) {
    throw new RuntimeError(`The tool "${tool.name}" wants to be approved by its own means.`, {
      code: 'TOOL_NOT_ALLOWED',
      hint: 'Leave out its approval and let a policy ask for review.',
    })
  }
  if (verdict === false || isDenied(verdict)) {
    const why = isDenied(verdict) ? `: ${verdict.reason}` : ''
    const message = `The call of "${tool.name}" was denied${why}.`
    throw new RuntimeError(message, { code: 'TOOL_NOT_ALLOWED' })
  }
  // UAP §8.4: a tool receives the context if it declares two parameters or is marked by `withToolContext`.
  const wantsContext = run.length >= 2 || Symbol.for('skein.tool-context') in tool
  return wantsContext ? run.call(tool, params, context) : run.call(tool, params)
}

/**
 * The risk of a tool that declares none. It is treated as a write: the policy decides about each call, the
 * start is logged before the call runs, and a call that a crash interrupted is not repeated. A tool of an MCP server is
 * code of someone else, so a person approves each call.
 */
export const DEFAULT_RISK: Risk = 'write_low_risk'

/** The tools of MCP servers that declare no risk. */
const toolsWithoutRisk = new WeakSet<object>()

/** Whether the tool comes from an MCP server, and no one has declared its risk. */
export function isUndeclared(tool: object): boolean {
  return toolsWithoutRisk.has(tool)
}

/** One definition per tool object, so that two prompts with the same tool share one definition. */
const conversions = new WeakMap<object, ToolDefinition>()

/**
 * Converts a tool of any origin (`defineTool`, `tool()`, `governed()`, or any object with the fields of a
 * `Tool`) to the runtime's form. Returns undefined for a value that is not a tool.
 */
export function asToolDefinition(value: unknown): ToolDefinition | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if ('kind' in value)
    return isPlainObject(value) && value['kind'] === 'tool'
      ? (value as unknown as ToolDefinition) // its fields are checked when it is loaded
      : undefined
  if (!('run' in value && 'parameters' in value && 'name' in value)) return undefined
  const earlier = conversions.get(value)
  if (earlier) return earlier
  const core = toolCore(value)
  const {
    risk: given,
    idempotent,
    metadata,
  } = value as Pick<Tool, 'risk' | 'idempotent' | 'metadata'>
  const isMcp = isPlainObject(metadata) && isPlainObject(metadata['mcp'])
  const risk = given ?? (isMcp ? 'write_high_risk' : DEFAULT_RISK)
  const rollback = isMcp && risk === 'write_high_risk' ? 'impossible' : undefined
  const fields = withoutUndefined({ risk, idempotent, rollback })
  // A governed tool refuses calls outside a governed run. The runtime governs every call itself, so it takes
  // the tool out of its wrapper. Whether calls of the tool can be undone is checked when it is loaded.
  const definition = core
    ? toolFrom(core.tool as unknown as Tool, core.governance as typeof core.governance & Undoable)
    : toolFrom(value as Tool, fields as ToolFromOptions<unknown, unknown> & Undoable)
  if (isMcp && given === undefined && !core) toolsWithoutRisk.add(definition)
  conversions.set(value, definition)
  return definition
}
