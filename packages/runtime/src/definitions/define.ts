import type {
  AgentDefinition,
  SideConfig,
  SideHandler,
  SimpleAgent,
  EffectContext,
  EffectDefinition,
  EndpointDefinition,
  HookDefinition,
  ModelDefinition,
  PromptDefinition,
} from './types.ts'
import type { HookName } from './hooks.ts'
import {
  type ArgumentParser,
  argumentParserMember,
  isParsedBy,
  isPlainObject,
  isStandardSchema,
  type JsonSchema,
  type JsonValue,
  SkeinError,
  unknownOptions,
  type OptionNames,
} from '@skein/base'
import {
  type SchemaArguments,
  type SchemaArgumentsOptions,
  ToolArgumentError,
  type ToolSchema,
} from '@skein/ai'
import { schemaArguments } from '@skein/ai/engine'
import type { ThreadState } from '../contract/thread-state.ts'
import { RuntimeError } from '../contract/error.ts'
import { DefinitionError } from './resolved.ts'

const brand: symbol = Symbol.for('skein.agent')
/** The key under which a subagent keeps the agent that it was made of. */
const source: symbol = Symbol.for('skein.subagent-of')

/**
 * Defines an agent: a model that talks with a person. With `sideA` in place of `instructions` and `model` it may have
 * two sides that talk with each other, or a prompt of its own (`definePrompt`).
 *
 *     const support = defineAgent({
 *       name: 'support',
 *       instructions: 'You help customers of a book shop.',
 *       model: anthropic('claude-sonnet-4-5'),
 *       tools: [findOrder],
 *     })
 */
export function defineAgent<Data = unknown>(agent: AgentDeclaration<Data>): AgentDefinition<Data> {
  const { sideA, instructions } = agent as {
    readonly [Key in keyof AgentDeclaration]?: unknown
  } & {
    readonly instructions?: unknown
  }
  if (sideA !== undefined && instructions !== undefined) throw twoForms(agent.name)
  const full = sideA === undefined ? expanded(agent as SimpleAgent<Data>) : agent
  const { taskClass, ...rest } = full
  const copy = Object.fromEntries(Object.entries(rest).map(([k, v]) => [k, frozenDefinition(v)]))
  return branded(taskClass === undefined ? copy : { ...copy, taskClass })
}

/** What `defineAgent` takes: an agent with one prompt (`instructions`, `model`, …), or the sides of one (`sideA`, …). */
export type AgentDeclaration<Data = unknown> =
  | SimpleAgent<Data>
  | (Omit<AgentDefinition<Data>, 'sideA'> & {
      readonly sideA: SideConfig<Data>
      readonly instructions?: undefined
    })

/** The fields of a simple agent that belong to its prompt. The type ensures that none is missing. */
const promptFields: {
  readonly [Key in keyof Omit<SimpleAgent, keyof AgentDefinition | 'maxSteps' | 'label'>]-?: true
} = {
  instructions: true,
  model: true,
  tools: true,
  output: true,
  requiredSchema: true,
  includeChat: true,
  includePastTools: true,
  parallelToolCalls: true,
  toolChoice: true,
  variables: true,
  reasoning: true,
  recentImageThreshold: true,
  providerOptions: true,
  compaction: true,
}

/**
 * Makes side A and its prompt of the fields of a simple agent (Standard Agents §1). Fields that no agent has stay with
 * the agent, so that loading reports them, together with all other problems.
 */
function expanded(agent: SimpleAgent): AgentDefinition {
  const { maxSteps, label, ...fields } = agent
  const entries = Object.entries(fields)
  const isOfPrompt = ([key]: [string, unknown]): boolean => Object.hasOwn(promptFields, key)
  const own = Object.fromEntries(entries.filter((entry) => !isOfPrompt(entry)))
  const ofPrompt = Object.fromEntries(entries.filter(isOfPrompt))
  // An agent without any field of a prompt lacks both forms; loading says so.
  if (Object.keys(ofPrompt).length === 0) return agent as unknown as AgentDefinition
  const { instructions, ...options } = ofPrompt
  const subject = `agent "${String(agent.name)}"`
  const missing = (['instructions', 'model'] as const).filter((key) => agent[key] === undefined)
  if (missing.length > 0)
    throw new DefinitionError(
      missing.map((field) => ({ subject, field, message: REQUIRED_FIELDS[field] })),
    )
  const prompt = definePrompt({
    name: agent.name,
    prompt: instructions,
    ...options,
  } as Omit<PromptDefinition, 'kind'>) // loading checks the fields
  const side = Object.entries({ prompt, label, maxSteps }).filter(
    ([, value]) => value !== undefined,
  )
  return { ...own, sideA: Object.fromEntries(side) } as unknown as AgentDefinition
}

const REQUIRED_FIELDS = {
  instructions:
    'is required: the text of the prompt. An agent with sideA has a prompt of its own instead',
  model: "is required, e.g. anthropic('claude-sonnet-4-5') of @skein/ai/anthropic",
} as const

function twoForms(name: unknown): DefinitionError {
  const message =
    'must be left out, because sideA is given; sideA has a prompt with a text of its own, made with definePrompt'
  return new DefinitionError([
    { subject: `agent "${String(name)}"`, field: 'instructions', message },
  ])
}

/** Freezes an agent, and gives it the symbol by which `isAgentLike` recognises it. */
function branded(
  fields: object,
  { source: made }: { readonly source?: object } = {},
): AgentDefinition<never> {
  // The symbols are not enumerable, because they are no fields of the agent.
  Object.defineProperty(fields, brand, { value: true })
  if (made) Object.defineProperty(fields, source, { value: made })
  return Object.freeze(fields) as AgentDefinition<never>
}

/**
 * Returns the agent with another model, e.g. a scripted one in a test. `sideB` is the model of side B of an agent whose
 * two sides are models. Sub-agents keep their models.
 *
 *     const runtime = await createRuntime({ agents: [withModel(support, scripted([says('Hello.')]))] })
 */
export function withModel<Data>(
  agent: AgentDefinition<Data>,
  model: PromptDefinition['model'],
  { sideB }: { readonly sideB?: PromptDefinition['model'] } = {},
): AgentDefinition<Data> {
  const change = (field: 'sideA' | 'sideB', chosen: PromptDefinition['model']): SideConfig => {
    const side = agent[field]
    const { prompt, agent: other } = side ?? {}
    if (typeof prompt === 'object')
      return { ...side, prompt: definePrompt({ ...prompt, model: chosen }) }
    const name = typeof prompt === 'string' ? `names the prompt "${prompt}"` : 'has no prompt'
    throw new RuntimeError(`The ${field} of the agent "${agent.name}" ${name}.`, {
      code: 'INPUT_INVALID',
      hint: other
        ? 'Give the agent() of the side another model: agent({ ...other, model }).'
        : 'withModel changes a prompt that the side has as an object: sideA: { prompt: definePrompt({ … }) }.',
    })
  }
  const sideA = change('sideA', model)
  const changed = { ...agent, sideA, ...(sideB && { sideB: change('sideB', sideB) }) }
  return branded(frozenDefinition(changed))
}

/**
 * Makes a subagent of an ordinary agent: a `dual_ai` agent (Standard Agents §7.1) whose side A is the agent's, and
 * whose session ends with the answer of that side, which is the result. Side B never speaks.
 *
 *     tools: [asSubagent(researcher)]
 *     tools: [{ name: asSubagent(researcher), blocking: false, resumable: { maxInstances: 3 } }]
 *
 * The agent itself may be registered too. The tool then still has the agent's name, and the threads of the subagent
 * belong to an agent called `<name>_subagent`.
 */
export function asSubagent(
  agent: AgentDefinition,
  options: Pick<Partial<AgentDefinition>, 'name' | 'toolDescription'> = {},
): AgentDefinition {
  const { name = agent.name, toolDescription } = options
  const unknown = unknownOptions(options, SUBAGENT_OPTIONS)
  if (unknown !== undefined)
    throw new RuntimeError(`asSubagent() does not have these options: ${unknown}.`, {
      code: 'INPUT_INVALID',
      hint: 'It has: name, toolDescription. Everything else belongs to the agent.',
    })
  const isPlain = options.name === undefined && toolDescription === undefined
  const earlier = isPlain ? subagents.get(agent) : undefined
  if (earlier) return earlier
  if (agent.type === 'dual_ai')
    throw new RuntimeError(`The agent "${agent.name}" is a subagent already.`, {
      code: 'INPUT_INVALID',
      hint: 'List it in the tools as it is; asSubagent is for agents of the type ai_human.',
    })
  const described = toolDescription ?? agent.toolDescription ?? agent.description
  const made = branded(
    {
      ...agent,
      name,
      type: 'dual_ai',
      maxSessionTurns: agent.maxSessionTurns ?? 250,
      exposeAsTool: true,
      toolDescription: described,
      sideA: frozenDefinition({ ...agent.sideA, sessionStopOnResponse: true }),
      sideB: Object.freeze({ label: 'caller', handler: silent }),
    },
    { source: agent },
  )
  if (isPlain) subagents.set(agent, made)
  return made
}

const SUBAGENT_OPTIONS: OptionNames = {
  known: ['name', 'toolDescription'],
  renamed: { description: 'toolDescription' },
}

/** The handler of the side of a subagent that never speaks. */
export const silent: SideHandler = () => undefined

/** The subagents that were made without options, by their agents: an agent that two prompts list is one subagent. */
const subagents = new WeakMap<AgentDefinition, AgentDefinition>()

/** Returns the agent that `asSubagent` made this agent of; undefined for any other agent. */
export function sourceOf(agent: object): object | undefined {
  return (agent as { readonly [source]?: object })[source]
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
export function definePrompt<Data = unknown>(
  prompt: Omit<PromptDefinition<Data>, 'kind'>,
): PromptDefinition<Data> {
  const fields = Object.entries(prompt).map(([key, value]) => [key, frozenDefinition(value)])
  return Object.freeze({ ...Object.fromEntries(fields), kind: 'prompt' }) as PromptDefinition<Data>
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
  const subject = { kind: 'effect', name: options.name }
  // The definition has its code in `run`, so loading could not tell that the option was misnamed.
  if (execute === undefined && 'run' in options)
    throw new DefinitionError([
      {
        subject: `effect "${options.name}"`,
        field: 'run',
        message: 'is not a known field; write execute: (state, args) => …',
      },
    ])
  const parser = args && definedArguments(subject, args, { accepts: 'json' }).parser
  const read = async (given: JsonValue, context: EffectContext): Promise<Args> => {
    // Without a schema, Args is JSON. The arguments of a governed effect were parsed before it was judged.
    if (!args || !parser || isParsedBy(context, parser)) return given as Args
    const answer = await args['~standard'].validate(given)
    if (answer.issues) throw new ToolArgumentError(options.name, answer.issues)
    return answer.value
  }
  // Values that are not functions are kept, so that loading reports them together with all other problems.
  const run =
    typeof execute === 'function'
      ? async (state: ThreadState, given: JsonValue, context: EffectContext) =>
          execute(state, await read(given, context), context)
      : (execute as never)
  const look =
    typeof probe === 'function'
      ? async (given: JsonValue, context: EffectContext) =>
          probe(await read(given, context), context)
      : (probe as never)
  const definition = { ...rest, ...argumentParserMember(parser), kind: 'effect' as const, run }
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

/** What `defineTool` and `defineEffect` make of their `args`. */
interface DefinedArguments<Args> extends Omit<SchemaArguments<Args>, 'parser'> {
  readonly parser: ArgumentParser | undefined
}

/**
 * Creates the parse phase of a tool or a scheduled effect. Without a schema there is none: the code gets an empty object,
 * whatever the model sends.
 */
export function definedArguments<Args>(
  subject: { readonly kind: string; readonly name: string },
  schema: ToolSchema<Args> | undefined,
  options?: SchemaArgumentsOptions,
): DefinedArguments<Args> {
  if (schema === undefined) {
    const none = Object.freeze({}) as Args // the only value of `NoArguments`
    return { parameters: NO_PARAMETERS, parser: undefined, read: async () => none }
  }
  if (!isStandardSchema(schema)) {
    throw invalid(subject, 'must be a Standard Schema, e.g. z.object({ … })')
  }
  try {
    return schemaArguments(subject.name, schema, options)
  } catch (error) {
    if (!SkeinError.is(error)) throw error
    throw invalid(subject, [error.message, error.hint].filter(Boolean).join(' '), error)
  }
}

const NO_PARAMETERS: JsonSchema = Object.freeze({
  type: 'object',
  properties: Object.freeze({}),
  additionalProperties: false,
})

function invalid(
  { kind, name }: { kind: string; name: string },
  message: string,
  cause?: unknown,
): DefinitionError {
  return new DefinitionError([{ subject: `${kind} "${name}"`, field: 'args', message }], { cause })
}
