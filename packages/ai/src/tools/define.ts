import {
  argumentParserMember,
  messageOf,
  SkeinError,
  isStandardSchema,
  toJsonSchema,
  unknownOptions,
  type JsonObject,
  type JsonSchema,
  type OptionNames,
} from '@skein/base'
import { TOOL_RISKS, type ApprovalResult, type Tool, type ToolContext } from '../contract/tool.ts'
import type { ToolValue } from '../contract/tool-types.ts'
import { schemaArguments, type SchemaArguments, type ToolSchema } from './arguments.ts'

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

/**
 * A tool whose arguments are parsed before anything judges a call. A direct call of `run` parses them first. It can be
 * used wherever a `Tool` is accepted.
 */
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
 * `args` is inferred, and the tool parses the model's arguments once, before anything judges the call: policy,
 * approver, log, `approval` and `run` all get the value that the schema makes, which must be JSON. `llm()` itself
 * validates nothing (UPP §11.2): parsing is the first phase of such a tool. With raw JSON Schema, `args` is a
 * `JsonObject` as the model wrote it, not validated. An invalid definition throws one error that lists all problems.
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
  const { parameters, schema } = checkDefinition(definition)
  const { parameters: _given, run, approval, ...rest } = definition
  // With JSON Schema, `Args` is `JsonObject`.
  const read = async (params: unknown, context: Context): Promise<Args> =>
    schema ? schema.read(params, context) : (params as Args)
  const parser = argumentParserMember(schema?.parser)
  const defined: DefinedTool<Args, Result, Context, Name, Input> = {
    ...rest,
    ...parser,
    parameters,
    run: Object.assign(
      async (params: unknown, context: Context) => run(await read(params, context), context),
      parser,
    ),
  }
  if (!approval) return withToolContext(defined)
  return withToolContext({
    ...defined,
    approval: async (params, context) => approval(await read(params, context), context),
  })
}

/** The names of all options; the type ensures that none is missing. */
const optionNames: { readonly [Name in keyof ToolDeclaration<never, never>]-?: true } = {
  name: true,
  description: true,
  parameters: true,
  run: true,
  approval: true,
  toModel: true,
  metadata: true,
  sequential: true,
  dependsOn: true,
  risk: true,
  idempotent: true,
  timeoutMs: true,
}

const forGovernance = 'governed(tool, { risk, … }) of @skein/governance'

const TOOL_OPTIONS: OptionNames = {
  known: Object.keys(optionNames),
  renamed: {
    inputSchema: 'parameters',
    schema: 'parameters',
    args: 'parameters',
    input: 'parameters',
    execute: 'run',
    handler: 'run',
    func: 'run',
    needsApproval: 'approval',
    toModelOutput: 'toModel',
    rollback: forGovernance,
    raise: forGovernance,
    probe: forGovernance,
    evidence: forGovernance,
  },
}

/** Returns what the parameters make of the arguments. Throws for an invalid definition. */
function checkDefinition<Args, Result, Context>(
  definition: ToolDeclaration<Args, Result, Context>,
): { readonly parameters: JsonSchema; readonly schema?: SchemaArguments<Args> } {
  const fields: Partial<Record<keyof Tool, unknown>> = definition ?? {}
  const { name, description, parameters, run, approval, risk, timeoutMs, idempotent } = fields
  const problems: string[] = []
  const unknown = unknownOptions(fields, TOOL_OPTIONS)
  if (unknown !== undefined) problems.push(`it has unknown options: ${unknown}`)
  let schema: SchemaArguments<Args> | undefined
  let json: JsonSchema = {}
  let cause: unknown
  if (typeof name !== 'string' || name === '') problems.push('name is not a non-empty string')
  if (typeof description !== 'string') problems.push('description is not a string')
  if (typeof run !== 'function') problems.push('run is not a function')
  if (approval !== undefined && typeof approval !== 'function')
    problems.push('approval is not a function')
  if (risk !== undefined && !TOOL_RISKS.some((known) => known === risk))
    problems.push(`risk is not one of ${TOOL_RISKS.join(', ')}`)
  if (idempotent !== undefined && typeof idempotent !== 'boolean')
    problems.push('idempotent is not a boolean')
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs > 0))
    problems.push('timeoutMs is not a positive number')
  try {
    if (parameters === undefined)
      throw new Error('missing; for a tool without arguments, { type: "object" }')
    // The compiler cannot know that a value with `~standard` is the schema of `Args`.
    if (isStandardSchema(parameters))
      schema = schemaArguments(String(name), parameters as unknown as ToolSchema<Args>)
    json = schema?.parameters ?? toJsonSchema(parameters)
    const { type } = json
    if (typeof type === 'string' && type !== 'object')
      problems.push(`parameters describes a value of type "${type}", not an object`)
  } catch (error) {
    cause = error
    problems.push(`parameters: ${messageOf(error).replace(/\.$/, '')}`)
  }
  if (problems.length === 0) return { parameters: json, schema }
  const label = typeof name === 'string' && name !== '' ? `The tool "${name}"` : 'A tool'
  throw new SkeinError(`${label} cannot be defined: ${problems.join('; ')}.`, {
    code: 'TOOL_DEFINITION_INVALID',
    hint: 'tool({ name, description, parameters, run(args, context) }); parameters is a Zod 4, ArkType or Valibot schema, or a JSON Schema object.',
    cause,
  })
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
