import {
  messageOf,
  SkeinError,
  isStandardSchema,
  toJsonSchema,
  type JsonObject,
  type JsonSchema,
  type StandardIssue,
  type StandardJSONSchemaV1,
  type StandardSchemaV1,
} from '@skein/base'
import { TOOL_RISKS, type ApprovalResult, type Tool, type ToolContext } from '../contract/tool.ts'
import type { ToolValue } from '../contract/tool-types.ts'

/** A schema that can validate and convert itself to JSON Schema: Zod 4, ArkType, Valibot with its adapter. */
export type ToolSchema<Args, Input = unknown> = StandardSchemaV1<Input, Args> &
  StandardJSONSchemaV1<Input, Args>

/** JSON Schema as a plain object. The arguments have the type `JsonObject` and are not validated. */
type RawSchema = JsonSchema & { readonly '~standard'?: never }

type Approval<Args, Context> = (
  args: Args,
  context: Context,
) => ApprovalResult | Promise<ApprovalResult>

/** The input of `tool`. */
export interface ToolDeclaration<
  Args,
  Result,
  Context = ToolContext,
  Name extends string = string,
  Input = unknown,
> extends Omit<Tool, 'name' | 'parameters' | 'run' | 'approval' | 'toModel'> {
  readonly name: Name
  readonly parameters: ToolSchema<Args, Input> | RawSchema
  readonly run: (args: Args, context: Context) => Result | Promise<Result>
  readonly approval?: Approval<Args, Context>
  /** Returns the form of the result that the model sees. */
  readonly toModel?: (result: ToolValue<NoInfer<Result>>) => unknown
}

/** A tool whose `run` validates its arguments. It can be used wherever a `Tool` is accepted. */
export interface DefinedTool<
  Args,
  Result,
  Context = ToolContext,
  Name extends string = string,
  Input = unknown,
> extends Omit<Tool, 'name' | 'run' | 'approval'> {
  readonly name: Name
  readonly parameters: JsonSchema
  readonly run: (params: unknown, context: Context) => Promise<Result>
  readonly approval?: Approval<unknown, Context>
  /** Never set; only carries the types for wrappers that infer them. */
  readonly '~types'?: { readonly args: Args; readonly result: Result; readonly input: Input }
}

/**
 * Builds a tool that `llm`, `agent`, `governed` and the runtime accept. With a Standard Schema, the type of
 * `args` is inferred, and the model's arguments are validated in the tool's own `run` and `approval`, since
 * `llm()` must not do it (UPP §11.2). With raw JSON Schema, `args` is a `JsonObject` as the model wrote it,
 * not validated. An invalid definition throws one error that lists all problems.
 *
 *     const weather = tool({
 *       name: 'weather',
 *       description: 'The weather in a city.',
 *       parameters: z.object({ city: z.string() }),
 *       run: ({ city }) => forecast(city),
 *     })
 */
export function tool<
  Args = JsonObject,
  Result = unknown,
  Context extends object = ToolContext,
  Name extends string = string,
  Input = unknown,
>(
  definition: ToolDeclaration<Args, Result, Context, Name, Input>,
): DefinedTool<Args, Result, Context, Name, Input> {
  const schema = checkDefinition(definition)
  const { parameters, run, approval, ...rest } = definition
  const check = async (params: unknown): Promise<Args> => {
    if (!isStandardSchema(parameters)) return params as Args // with JSON Schema, `Args` is `JsonObject`
    const answer = await (parameters as ToolSchema<Args>)['~standard'].validate(params)
    if (answer.issues) throw new ToolArgumentError(definition.name, answer.issues)
    return answer.value
  }
  const defined: DefinedTool<Args, Result, Context, Name, Input> = {
    ...rest,
    parameters: schema,
    run: async (params, context) => run(await check(params), context),
  }
  if (!approval) return withToolContext(defined)
  return withToolContext({
    ...defined,
    approval: async (params, context) => approval(await check(params), context),
  })
}

/** Returns the JSON Schema of the parameters. Throws for an invalid definition. */
function checkDefinition<Args, Result, Context>(
  definition: ToolDeclaration<Args, Result, Context>,
): JsonSchema {
  const given: Partial<Record<keyof Tool, unknown>> = definition ?? {}
  const { name, description, parameters, run, approval, risk, timeoutMs } = given
  const problems: string[] = []
  let schema: JsonSchema = {}
  if (typeof name !== 'string' || name === '') problems.push('name is not a non-empty string')
  if (typeof description !== 'string') problems.push('description is not a string')
  if (typeof run !== 'function') problems.push('run is not a function')
  if (approval !== undefined && typeof approval !== 'function')
    problems.push('approval is not a function')
  if (risk !== undefined && !TOOL_RISKS.some((known) => known === risk))
    problems.push(`risk is not one of ${TOOL_RISKS.join(', ')}`)
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs > 0))
    problems.push('timeoutMs is not a positive number')
  try {
    schema = toJsonSchema(parameters)
    const { type } = schema
    if (typeof type === 'string' && type !== 'object')
      problems.push(`parameters describes a value of type "${type}", not an object`)
  } catch (error) {
    problems.push(`parameters: ${messageOf(error)}`)
  }
  if (problems.length === 0) return schema
  const shown = typeof name === 'string' && name !== '' ? `The tool "${name}"` : 'A tool'
  throw new SkeinError(`${shown} cannot be defined: ${problems.join('; ')}.`, {
    code: 'TOOL_DEFINITION_INVALID',
    hint: 'tool({ name, description, parameters, run(args, context) }); parameters is a Zod 4, ArkType or Valibot schema, or a JSON Schema object.',
  })
}

/**
 * Thrown when the model's arguments do not match the tool's schema.
 * The model sees every issue and can try again.
 */
export class ToolArgumentError extends SkeinError {
  readonly issues: readonly StandardIssue[]

  constructor(toolName: string, issues: readonly StandardIssue[]) {
    const described = issues.map(({ path = [], message }) => {
      const keys = path.map((step) => String(typeof step === 'object' ? step.key : step))
      return keys.length > 0 ? `${keys.join('.')}: ${message}` : message
    })
    super(`The arguments of "${toolName}" are invalid: ${described.join('; ')}.`, {
      code: 'TOOL_ARGUMENTS_INVALID',
    })
    this.issues = issues
  }
}

const marker = Symbol.for('skein.tool-context')

/**
 * Marks a tool whose `run` needs the context regardless of its declared number of parameters: for wrappers,
 * default values and rest parameters, where `run.length` is not reliable (UAP §8.4).
 */
export function withToolContext<T extends Tool>(tool: T): T {
  return deriveTool(tool, { [marker]: true })
}

/**
 * Returns a copy of a tool with some properties changed. Unlike a spread, it keeps the methods of a class.
 */
export function deriveTool<T extends Tool>(tool: T, changes: object): T {
  return Object.create(Object.getPrototypeOf(tool) as object | null, {
    ...Object.getOwnPropertyDescriptors(tool),
    ...Object.getOwnPropertyDescriptors(changes),
  }) as T // the type of `Object.create` is `any`
}

/** True if `run` declares two parameters or the tool has the marker of `withToolContext` (UAP §8.4). */
export function wantsContext(tool: Tool): boolean {
  return tool.run.length >= 2 || marker in tool
}
