import type {
  AgentDefinition,
  EffectContext,
  EffectDefinition,
  EndpointDefinition,
  HookDefinition,
  ModelDefinition,
  PromptDefinition,
} from './types.ts'
import type { HookName } from './hooks.ts'
import {
  isPlainObject,
  isStandardSchema,
  type JsonSchema,
  type JsonValue,
  SkeinError,
  toJsonSchema,
} from '@skein/base'
import { createProvider, ToolArgumentError, type ToolSchema } from '@skein/ai'
import type { ThreadState } from '../contract/thread-state.ts'
import { RuntimeError } from '../contract/error.ts'
import { DefinitionError } from './resolved.ts'

const brand: symbol = Symbol.for('skein.agent')

/**
 * Defines an agent: a model that talks with a person, or two models that talk with each other (side A and B).
 * A subagent is a `dual_ai` agent that a prompt lists among its tools.
 *
 *     const support = defineAgent({
 *       name: 'support',
 *       sideA: { prompt: supportPrompt },
 *     })
 */
export function defineAgent(agent: AgentDefinition): AgentDefinition {
  const { taskClass, ...rest } = agent
  const copy = Object.fromEntries(Object.entries(rest).map(([k, v]) => [k, frozenDefinition(v)]))
  const defined = taskClass === undefined ? copy : { ...copy, taskClass }
  // `isAgentLike` recognises an agent by this symbol. The symbol is not enumerable, because it is not a field
  // of the agent.
  Object.defineProperty(defined, brand, { value: true })
  return Object.freeze(defined) as unknown as AgentDefinition // a copy of the same fields
}

/**
 * Makes a subagent of an ordinary agent: a `dual_ai` agent (Standard Agents §7.1) whose side A is the agent's, and
 * whose session ends with the answer of that side, which is the result. Side B never speaks.
 *
 *     tools: [asSubagent(researcher)]
 *     tools: [{ name: asSubagent(researcher), blocking: false, resumable: { maxInstances: 3 } }]
 *
 * Give a `name` if the agent itself is registered too, because names of agents are unique.
 */
export function asSubagent(
  agent: AgentDefinition,
  options: Pick<Partial<AgentDefinition>, 'name' | 'toolDescription'> = {},
): AgentDefinition {
  const { name = agent.name, toolDescription } = options
  if (agent.type === 'dual_ai')
    throw new RuntimeError(`The agent "${agent.name}" is a subagent already.`, {
      code: 'INPUT_INVALID',
      hint: 'List it in the tools as it is; asSubagent is for agents of the type ai_human.',
    })
  const described = toolDescription ?? agent.toolDescription ?? agent.description
  return defineAgent({
    ...agent,
    name,
    type: 'dual_ai',
    maxSessionTurns: agent.maxSessionTurns ?? 250,
    exposeAsTool: true,
    toolDescription: described,
    sideA: { ...agent.sideA, sessionStopOnResponse: true },
    sideB: {
      prompt: definePrompt({ name: `${name}_nobody`, prompt: '', model: nobody, hooks: [] }),
    },
  })
}

/** The model of a side of the conversation that never speaks. It costs nothing, so budgets in US dollars work. */
const nobody: ModelDefinition = {
  kind: 'model',
  name: 'skein_nobody',
  model: createProvider({ name: 'skein' })('nobody'),
  inputPrice: 0,
  outputPrice: 0,
}

/**
 * Whether the value was made by `defineAgent` or is any object with `sideA` or `sideB`, even if its other
 * fields are wrong.
 */
export function isAgentLike(value: object): boolean {
  return brand in value || 'sideA' in value || 'sideB' in value
}

/**
 * Defines the text, the model and the tools of one side of an agent's conversation.
 *
 *     const supportPrompt = definePrompt({
 *       name: 'support',
 *       prompt: 'You help customers of a book shop.',
 *       model: anthropic('claude-sonnet-4-5'),
 *       tools: [findOrder],
 *     })
 */
export function definePrompt(prompt: Omit<PromptDefinition, 'kind'>): PromptDefinition {
  const fields = Object.entries(prompt).map(([key, value]) => [key, frozenDefinition(value)])
  return Object.freeze({ ...Object.fromEntries(fields), kind: 'prompt' }) as PromptDefinition
}

/** Defines a model with its fallbacks and prices, so that prompts can name it. */
export function defineModel(model: Omit<ModelDefinition, 'kind'>): ModelDefinition {
  return Object.freeze({
    ...model,
    kind: 'model' as const,
    fallbacks: frozenDefinition(model.fallbacks),
    capabilities: frozenDefinition(model.capabilities),
  })
}

/**
 * Defines code (a hook) that runs at a fixed point, e.g. before a message is stored, in threads whose agents list it.
 *
 *     const shout = defineHook({
 *       id: 'shout',
 *       hook: 'after_system_message',
 *       execute: (state, text) => text.toUpperCase(),
 *     })
 */
export function defineHook<Name extends HookName>(
  hook: Omit<HookDefinition<Name>, 'kind'>,
): HookDefinition<Name> {
  return Object.freeze({ ...hook, kind: 'hook' as const })
}

/** Options of `defineEffect`. */
export interface EffectOptions<Args> extends Omit<EffectDefinition, 'kind' | 'run' | 'probe'> {
  /** Any Standard Schema, checked before every run. Without it, arguments are any JSON. */
  readonly args?: ToolSchema<Args>
  readonly execute: (state: ThreadState, args: NoInfer<Args>, context: EffectContext) => unknown
  /** Finds out whether the effect happened, after a process died during it. It must not change anything. */
  readonly probe?: (
    args: NoInfer<Args>,
    context: EffectContext,
  ) => ReturnType<NonNullable<EffectDefinition['probe']>>
}

/**
 * Defines work for later (a scheduled effect), which a tool, a hook or a person schedules.
 *
 *     const remind = defineEffect({
 *       name: 'remind',
 *       args: z.object({ text: z.string() }),
 *       execute: (state, { text }) => state.queueMessage({ content: text }),
 *     })
 */
export function defineEffect<Args = JsonValue>(options: EffectOptions<Args>): EffectDefinition {
  const { args, execute, probe, ...rest } = options
  const schema = args && checkedArguments({ kind: 'effect', name: options.name }, args).check
  const check = async (given: JsonValue): Promise<Args> =>
    schema ? schema(given) : (given as Args) // without a schema Args is JSON
  // Values that are not functions are kept, so that loading reports them together with all other problems.
  const run =
    typeof execute === 'function'
      ? async (state: ThreadState, given: JsonValue, context: EffectContext) =>
          execute(state, await check(given), context)
      : (execute as never)
  const look =
    typeof probe === 'function'
      ? async (given: JsonValue, context: EffectContext) => probe(await check(given), context)
      : (probe as never)
  const definition = { ...rest, kind: 'effect' as const, run }
  return Object.freeze(probe === undefined ? definition : { ...definition, probe: look })
}

/** The function that handles requests to a route. */
export type EndpointHandler = EndpointDefinition['execute']

/**
 * Defines a route that every thread has. Below `endpoints/`, the file name determines path and method, so
 * that the handler alone is sufficient.
 */
export function defineEndpoint(handler: EndpointHandler): EndpointHandler
export function defineEndpoint(endpoint: Omit<EndpointDefinition, 'kind'>): EndpointDefinition
export function defineEndpoint(
  endpoint: EndpointHandler | Omit<EndpointDefinition, 'kind'>,
): EndpointHandler | EndpointDefinition {
  if (typeof endpoint === 'function') return endpoint
  return Object.freeze({ ...endpoint, kind: 'endpoint' as const })
}

/**
 * Returns a frozen copy of plain data. Objects with an identity (definitions, models, schemas, tools, class
 * instances, and frozen objects) are not copied.
 */
export function frozenDefinition<T>(value: T): T {
  return copy(value, new Map()) as T // a copy has the same type
}

function copy(value: unknown, seen: Map<object, unknown>): unknown {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  if (seen.has(value)) return seen.get(value)
  if (Array.isArray(value)) {
    const items: unknown[] = []
    seen.set(value, items)
    for (const item of value) items.push(copy(item, seen))
    return Object.freeze(items)
  }
  if (!isPlainObject(value) || identifying.some((key) => key in value)) return value
  const fields: Record<string, unknown> = {}
  seen.set(value, fields)
  for (const [key, field] of Object.entries(value)) fields[key] = copy(field, seen)
  return Object.freeze(fields)
}

/** The keys that identify definitions, schemas, models and tools. */
const identifying = ['kind', 'sideA', '~standard', 'provider', 'run'] as const

/** The arguments of a tool or a scheduled effect: the JSON Schema for models, and the functions that check them. */
export interface CheckedArguments<Args> {
  readonly parameters: JsonSchema
  readonly check: (params: unknown) => Promise<Args>
  /** Checks synchronously, for `raise` and `evidence`; returns undefined when the arguments are invalid. */
  readonly checkNow: (params: unknown) => { readonly value: Args } | undefined
}

/**
 * Creates the checks of a schema. Without a schema there are no arguments, and `check` always returns an
 * empty object.
 */
export function checkedArguments<Args>(
  subject: { readonly kind: string; readonly name: string },
  schema: ToolSchema<Args> | undefined,
): CheckedArguments<Args> {
  const none = Object.freeze({}) as Args // the only value of `NoArguments`
  if (schema === undefined) {
    return { parameters: NO_PARAMETERS, check: async () => none, checkNow: () => ({ value: none }) }
  }
  if (!isStandardSchema(schema)) {
    throw invalid(subject, 'must be a Standard Schema, e.g. z.object({ … })')
  }
  let parameters: JsonSchema
  try {
    parameters = toJsonSchema(schema)
  } catch (error) {
    if (!SkeinError.is(error)) throw error
    throw invalid(subject, [error.message, error.hint].filter(Boolean).join(' '))
  }
  return {
    parameters,
    async check(params) {
      const answer = await schema['~standard'].validate(params)
      if (answer.issues) throw new ToolArgumentError(subject.name, answer.issues)
      return answer.value
    },
    checkNow(params) {
      const answer = schema['~standard'].validate(params)
      if (answer instanceof Promise) {
        throw invalid(
          subject,
          'validates asynchronously, but raise and evidence must answer at once',
        )
      }
      return answer.issues ? undefined : answer
    },
  }
}

const NO_PARAMETERS: JsonSchema = Object.freeze({
  type: 'object',
  properties: Object.freeze({}),
  additionalProperties: false,
})

function invalid({ kind, name }: { kind: string; name: string }, message: string): DefinitionError {
  return new DefinitionError([{ subject: `${kind} "${name}"`, field: 'args', message }])
}
