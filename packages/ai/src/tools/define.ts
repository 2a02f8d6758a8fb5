import {
  type JsonSchema,
  SkeinError,
  type StandardIssue,
  type StandardJSONSchemaV1,
  type StandardSchemaV1,
  toJsonSchema,
} from '@skein/base'
import type { ApprovalResult, Tool, ToolContext } from '../tool.ts'

/** A schema that validates and can describe itself: Zod 4, ArkType, Valibot with its adapter. */
export type ToolSchema<Args> = StandardSchemaV1<unknown, Args> & StandardJSONSchemaV1<unknown, Args>

type Approval<Args> = (args: Args, context: ToolContext) => ApprovalResult | Promise<ApprovalResult>

/** What `tool` makes a tool of. */
export interface ToolDefinition<Args, Result> extends Omit<
  Tool,
  'parameters' | 'run' | 'approval'
> {
  readonly parameters: ToolSchema<Args>
  readonly run: (args: Args, context: ToolContext) => Result | Promise<Result>
  readonly approval?: Approval<Args>
}

/** A tool whose `run` has checked its arguments. It is a plain `Tool` for everything that takes one. */
export interface DefinedTool<Args, Result> extends Omit<Tool, 'run' | 'approval'> {
  readonly parameters: JsonSchema
  readonly run: (params: unknown, context: ToolContext) => Promise<Result>
  readonly approval?: Approval<unknown>
  /** Never set; carries the types for wrappers that infer them. */
  readonly '~types'?: { readonly args: Args; readonly result: Result }
}

/**
 * Builds a tool from any Standard Schema: `args` is inferred, and the model's arguments are checked
 * in the tool's own `run` and `approval`, since `llm()` must not do it (UPP §11.2).
 *
 *     const weather = tool({
 *       name: 'weather',
 *       description: 'The weather in a city.',
 *       parameters: z.object({ city: z.string() }),
 *       run: ({ city }) => forecast(city),
 *     })
 */
export function tool<Args, Result>(
  definition: ToolDefinition<Args, Result>,
): DefinedTool<Args, Result> {
  const { parameters, run, approval, ...rest } = definition
  const check = (params: unknown): Promise<Args> => checked(definition.name, parameters, params)
  const defined: DefinedTool<Args, Result> = {
    ...rest,
    parameters: toJsonSchema(parameters),
    run: async (params, context) => run(await check(params), context),
    ...(approval && {
      approval: async (params: unknown, context: ToolContext) =>
        approval(await check(params), context),
    }),
  }
  return withToolContext(defined)
}

async function checked<Args>(
  toolName: string,
  schema: ToolSchema<Args>,
  params: unknown,
): Promise<Args> {
  const answer = await schema['~standard'].validate(params)
  if (answer.issues) throw new ToolArgumentError(toolName, answer.issues)
  return answer.value
}

/** The model's arguments do not fit the tool's schema. It is told every issue, and can try again. */
export class ToolArgumentError extends SkeinError {
  readonly issues: readonly StandardIssue[]

  constructor(toolName: string, issues: readonly StandardIssue[]) {
    super(`The arguments of "${toolName}" are invalid: ${issues.map(describe).join('; ')}.`, {
      code: 'TOOL_ARGUMENTS_INVALID',
    })
    this.issues = issues
  }
}

function describe({ path = [], message }: StandardIssue): string {
  const keys = path.map((step) => String(typeof step === 'object' ? step.key : step))
  return keys.length > 0 ? `${keys.join('.')}: ${message}` : message
}

const marker = Symbol.for('skein.tool-context')

/**
 * Marks a tool whose `run` takes the context whatever its declared number of parameters: for
 * wrappers, default values and rest parameters, where `run.length` says nothing (UAP A19).
 */
export function withToolContext<T extends Tool>(tool: T): T {
  return deriveTool(tool, { [marker]: true })
}

/** A copy of a tool with some properties changed. Unlike a spread it keeps the methods of a class. */
export function deriveTool<T extends Tool>(tool: T, changes: object): T {
  return Object.create(Object.getPrototypeOf(tool) as object | null, {
    ...Object.getOwnPropertyDescriptors(tool),
    ...Object.getOwnPropertyDescriptors(changes),
  }) as T // Object.create does not carry the type
}

/** UAP §8.4: two declared parameters, or the marker. */
export function wantsContext(tool: Tool): boolean {
  return tool.run.length >= 2 || marker in tool
}
