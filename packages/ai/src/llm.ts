import {
  type Clock,
  closest,
  type IdSource,
  isPlainObject,
  isStandardSchema,
  type OptionNames,
  systemClock,
  unknownOptions,
  uuidV4,
  wellFormed,
  isPromise,
} from '@skein/base'
import { checkOptions } from './turn/check-request.ts'
import { checkOf, type DataCheck, type Structure, toStructure } from './turn/structured-answer.ts'
import {
  type CallMessages,
  type History,
  type InferenceInput,
  toMessages,
} from './turn/to-messages.ts'
import { protectConfig } from './transport/config-secrets.ts'
import type {
  BoundLLMModel,
  LLMCapabilities,
  LLMRequest,
  ModelReference,
  Params,
  ParamsOf,
  ProviderConfig,
  Settings,
} from './contract/provider.ts'
import type { StreamEvent } from './contract/event.ts'
import type { Message } from './contract/message.ts'
import type { Unchecked } from './contract/structure.ts'
import { hasModelHooks, type Middleware } from './contract/middleware.ts'
import { MiddlewareRun } from './turn/run-middleware.ts'
import { type EmitEvents, EventReader } from './contract/event-reader.ts'
import { runTurn, toolHooks, type TurnTask } from './turn/run-turn.ts'
import { StreamResult } from './turn/batch-reader.ts'
import { withVendorCalls } from './turn/vendor-calls.ts'
import { type ErrorOrigin, invalidRequest, invalidValue, type UPPError } from './contract/error.ts'
import { deriveTool } from './tools/define.ts'
import { joinPorts } from './tools/call-ports.ts'
import { type BatchResult, settleTools, type ToolBatch } from './tools/executor.ts'
import type { Tool, ToolUseStrategy } from './contract/tool.ts'
import type { ToolTypes, TypesOf } from './contract/tool-types.ts'
import type { Turn } from './contract/turn.ts'

/** The settings of an LLM instance: everything except the conversation (UPP §5.2). */
export interface LLMOptions<
  Data = unknown,
  T extends Tool = Tool,
  Model extends ModelReference = ModelReference,
> extends Settings {
  readonly model: Model
  readonly config?: ProviderConfig
  /**
   * Sent to the vendor unchanged. The type knows the names that the vendor of the model documents; an object
   * with other names compiles when it is declared as `Params`.
   */
  readonly params?: ParamsOf<Model>
  readonly system?: string
  readonly tools?: readonly T[]
  readonly toolStrategy?: ToolUseStrategy
  /**
   * The shape of the answers, which are JSON. They are parsed into `turn.data`. Without `validate` nothing checks
   * that they fit (UPP §12.2), so its type is then `UncheckedData`, or `unknown`.
   */
  readonly structure?: Structure<Data>
  /**
   * Whether `turn.data` is checked by the `structure`, which must be able to validate; it then has the type of the
   * `structure`. Data that does not fit is an INVALID_RESPONSE error with `issues` and the turn. The data itself is
   * not transformed.
   */
  readonly validate?: boolean
  /** How many times the model receives what is wrong with its structured answer and is asked again. Default 0. */
  readonly repair?: number
  readonly middleware?: readonly Middleware[]
  /** Returns what a tool call runs with: a gate (may refuse it), a journal (records it durably) and a context. */
  readonly open?: ToolBatch['open']
  /** Aborts every call of this instance. For one call: `model.with({ signal }).generate(…)`. */
  readonly signal?: AbortSignal
  /** The sources of times and ids; replace them for reproducible runs. */
  readonly clock?: Clock
  readonly ids?: IdSource
}

/** The type of the data: that of the `structure` if `validate` is true. */
export type DataOf<Data, Validate extends boolean> = [Validate] extends [true]
  ? Data
  : Unchecked<Data>

/** Options with `validate: true`, which checks the data of answers. */
export interface Validated<Data> {
  readonly structure: Structure<Data>
  readonly validate: true
}

/**
 * A model with its settings, ready for calls (UPP §5.3). It keeps no history between calls. The types of the
 * data, the tools and the model follow from the options.
 */
export interface LLMInstance<
  Data = unknown,
  Calls extends ToolTypes = ToolTypes,
  Model extends ModelReference = ModelReference,
> {
  readonly model: BoundLLMModel
  readonly capabilities: LLMCapabilities
  /** Returns the complete answer, after all tool calls have run. */
  generate(history: History, ...inputs: InferenceInput[]): Promise<Turn<Data, Calls>>
  generate(...inputs: InferenceInput[]): Promise<Turn<Data, Calls>>
  /** Streams the answer while it is produced. The resulting turn is the same as from `generate`. */
  stream(history: History, ...inputs: InferenceInput[]): StreamResult<Data, Calls>
  stream(...inputs: InferenceInput[]): StreamResult<Data, Calls>
  /** Returns the same model with some options changed, e.g. a signal for one call. */
  with<NewData, T extends Tool = never, NewModel extends ModelReference = Model>(
    changes: Partial<LLMOptions<NewData, T, NewModel>> & Validated<NewData>,
  ): LLMInstance<NewData, NewTypes<T, Calls>, NewModel>
  with<NewData, T extends Tool = never, NewModel extends ModelReference = Model>(
    changes: Partial<LLMOptions<NewData, T, NewModel>> & { readonly structure: Structure<NewData> },
  ): LLMInstance<Unchecked<NewData>, NewTypes<T, Calls>, NewModel>
  with<T extends Tool = never, NewModel extends ModelReference = Model>(
    changes: Partial<LLMOptions<unknown, T, NewModel>>,
  ): LLMInstance<Data, NewTypes<T, Calls>, NewModel>
  /** Runs one inference with all hooks, without running the tools that the model calls; an agent's step uses it. */
  infer(
    messages: readonly Message[],
    options?: InferOptions,
  ): AsyncGenerator<readonly StreamEvent[], Turn<Data, Calls>>
  /**
   * Runs tool calls as `generate` would: with this instance's tools, strategy and middleware. With `streaming:
   * false` it reports no events, only the result.
   */
  executeTools(batch: ToolRun): AsyncGenerator<readonly StreamEvent[], BatchResult>
}

/** The types of the tools that `with` was given, or the previous types if it was given no tools. */
type NewTypes<T extends Tool, Old extends ToolTypes> = [T] extends [never] ? Old : TypesOf<T>

/** Settings of one `infer`. */
export interface InferOptions {
  /** Whether the vendor streams its answer. Default true. */
  readonly streaming?: boolean
  /** Whether events are reported. Default true. With false the first `next` waits for the turn, which is cheaper. */
  readonly events?: boolean
  readonly signal?: AbortSignal
  /** The `state` of the middleware, if several calls belong to one run and share it. Default: a new map. */
  readonly state?: Map<string, unknown>
  /** The number that `onCycle` gets, if several inferences belong to one run. Default 1. */
  readonly cycle?: number
  /** How many times the model is asked again after a structured answer that does not fit. Default 0. */
  readonly repair?: number
}

/** A batch of tool calls for `executeTools`; missing fields are taken from the instance. */
export type ToolRun = Pick<ToolBatch, 'calls'> &
  Partial<Omit<ToolBatch, 'hooks' | 'provider'>> &
  Pick<InferOptions, 'streaming' | 'state'>

/**
 * Binds a model to its settings.
 *
 *     const claude = llm({ model: anthropic('claude-sonnet-4-5'), system: 'Be brief.' })
 *     const turn = await claude.generate('Hello!')
 *     for await (const event of claude.stream(turn.messages, 'And now?')) …
 */
export function llm<
  Data = unknown,
  T extends Tool = Tool,
  Model extends ModelReference = ModelReference,
  Validate extends boolean = false,
>(
  options: LLMOptions<Data, T, Model> & { readonly validate?: Validate },
): LLMInstance<DataOf<Data, Validate>, TypesOf<T>, Model> {
  checkNames(options)
  // The options say whether the data is checked; the type follows from them.
  return new LLM<DataOf<Data, Validate>, TypesOf<T>, Model>(options as never)
}

/** The names of all options; the type ensures that none is missing. */
const optionNames: { readonly [Name in keyof LLMOptions]-?: true } = {
  model: true,
  config: true,
  params: true,
  system: true,
  tools: true,
  toolStrategy: true,
  structure: true,
  validate: true,
  repair: true,
  middleware: true,
  open: true,
  signal: true,
  clock: true,
  ids: true,
  temperature: true,
  maxOutputTokens: true,
  topP: true,
  stop: true,
  seed: true,
  topK: true,
  toolChoice: true,
  parallelToolCalls: true,
  reasoning: true,
}

/** The names of the options of `llm()`, and what options of other libraries are called here; `agent()` has them too. */
export const LLM_OPTIONS: OptionNames = {
  known: Object.keys(optionNames),
  renamed: {
    maxTokens: 'maxOutputTokens',
    max_tokens: 'maxOutputTokens',
    stopSequences: 'stop',
    stop_sequences: 'stop',
    instructions: 'system',
    systemPrompt: 'system',
    schema: 'structure',
    output: 'structure',
    outputType: 'structure',
    responseFormat: 'structure',
    response_format: 'structure',
    prompt: 'system, or pass it to generate()',
    messages: 'the first argument of generate()',
    tool_choice: 'toolChoice',
    reasoningEffort: 'reasoning',
    thinking: 'reasoning',
    providerOptions: 'params',
    abortSignal: 'signal',
    apiKey: 'config.apiKey',
    baseURL: 'config.baseUrl',
    baseUrl: 'config.baseUrl',
    headers: 'config.headers',
    fetch: 'config.fetch',
    timeout: 'config.timeout',
    maxRetries: 'config.retryStrategy',
    retries: 'config.retryStrategy',
    maxSteps: 'toolStrategy.maxIterations',
    stopWhen: 'toolStrategy.maxIterations',
  },
}

function checkNames(options: object): void {
  const unknown = unknownOptions(options ?? {}, LLM_OPTIONS)
  if (unknown === undefined) return
  throw invalidValue(
    `llm() does not have these options: ${unknown}.`,
    `It has: ${LLM_OPTIONS.known.join(', ')}. Fields of the vendor go in params.`,
  )
}

class LLM<Data, Calls extends ToolTypes, Model extends ModelReference> implements LLMInstance<
  Data,
  Calls,
  Model
> {
  readonly model: BoundLLMModel
  readonly capabilities: LLMCapabilities
  readonly #options: LLMOptions<Data, Tool, Model>
  readonly #origin: ErrorOrigin
  /** The part of a request that is the same for every call of this instance. */
  readonly #base: Omit<LLMRequest, 'messages' | 'signal'>
  readonly #check: DataCheck | undefined

  constructor(options: LLMOptions<Data, Tool, Model>) {
    this.model = bindModel(options?.model)
    this.#origin = { provider: this.model.provider, modality: 'llm' }
    const { system, params = {}, structure, clock = systemClock, ids = uuidV4 } = options
    if (system !== undefined && typeof system !== 'string')
      throw invalidRequest(
        'The option system is not a string.',
        this.#origin,
        "Blocks of a vendor, e.g. with cache marks, go in that vendor's params.",
      )
    checkMiddleware(options.middleware ?? [], this.#origin)
    checkUse(options, this.#origin)
    // UPP §5.4: capabilities do not change during the lifetime of the instance.
    this.capabilities = Object.isFrozen(this.model.capabilities)
      ? this.model.capabilities
      : Object.freeze({ ...this.model.capabilities })
    this.#options = options
    // Options that were not given are left out, because providers and middleware may test for them by name.
    this.#base = {
      ...(system !== undefined && { system: wellFormed(system) }),
      params: params as Params, // known names are a matter of types; anything is sent
      ...settingsOf(options),
      tools: (options.tools ?? []).map((tool) => {
        // A tool may declare its parameters with a Standard Schema, which is converted to JSON Schema for the
        // vendor.
        if (!isStandardSchema(tool.parameters)) return tool
        const what = `parameters of the tool "${tool.name}"`
        return deriveTool(tool, { parameters: toStructure(tool.parameters, this.#origin, what) })
      }),
      ...(structure && { structure: toStructure(structure, this.#origin) }),
      config: protectConfig(options.config),
      clock,
      ids,
    }
    if (options.validate) this.#check = checkOf(structure, this.#origin)
    checkOptions(this.#base, this.capabilities, this.#origin)
  }

  async generate(...given: readonly (History | InferenceInput)[]): Promise<Turn<Data, Calls>> {
    return this.#tryRun(given, { streaming: false })()
  }

  stream(...given: readonly (History | InferenceInput)[]): StreamResult<Data, Calls> {
    const controller = new AbortController()
    const { model } = this
    const { structure } = this.#base
    let isFinal = false
    const onFinal = (is: boolean): void => void (isFinal = is)
    return new StreamResult<Data, Calls>(
      {
        batches: new EventReader(this.#tryRun(given, { streaming: true, controller, onFinal })),
        controller,
        isFinal: () => isFinal,
        origin: this.#origin,
      },
      (data) => (structure && model.readData ? model.readData(structure, data, true) : data),
    )
  }

  with<NewData, T extends Tool = never, NewModel extends ModelReference = Model>(
    changes: Partial<LLMOptions<NewData, T, NewModel>>,
  ): LLMInstance<NewData, NewTypes<T, Calls>, NewModel> {
    checkNames(changes)
    // The cast is safe: a changed `structure`, `tools` or `model` has its own type, an unchanged one its old type.
    const options = this.#options as object as LLMOptions<NewData, T, NewModel>
    return new LLM<NewData, NewTypes<T, Calls>, NewModel>({ ...options, ...changes })
  }

  infer(
    messages: readonly Message[],
    { streaming = true, events = true, repair: repairs = 0, ...options }: InferOptions = {},
  ): AsyncGenerator<readonly StreamEvent[], Turn<Data, Calls>> {
    const strategy = { maxIterations: 0 }
    const run = this.#run(
      { messages: [...messages], inputs: [] },
      { streaming, strategy, repairs, ...options },
    )
    return new EventReader((emit) => run(events ? emit : undefined))
  }

  executeTools(toolRun: ToolRun): AsyncGenerator<readonly StreamEvent[], BatchResult> {
    const { streaming = true } = toolRun
    return new EventReader((emit) => this.#runTools(toolRun, streaming ? emit : undefined))
  }

  async #runTools(
    { streaming = true, state, ...batch }: ToolRun,
    emit: EmitEvents<StreamEvent> | undefined,
  ): Promise<BatchResult> {
    const { middleware = [], toolStrategy, open } = this.#options
    const { model } = this
    const { clock, tools } = this.#base
    const signal = anySignal(batch.signal, this.#options.signal)
    const request = { ...this.#base, messages: [], signal }
    const run = new MiddlewareRun(middleware, {
      modality: 'llm',
      model,
      streaming,
      request,
      clock,
      state,
    })
    const task: ToolBatch = {
      ...batch,
      tools: withVendorCalls(batch.tools ?? tools, batch.calls, this.#base.params),
      clock: batch.clock ?? clock,
      strategy: batch.strategy ?? toolStrategy,
      open: joinPorts(open, batch.open),
      hooks: toolHooks(run),
      provider: model.provider,
      signal,
    }
    if (!emit) return await settleTools(task)
    return await settleTools(task, (events) => {
      const newEvents = run.transform(events)
      return isPromise(newEvents) ? newEvents.then(emit) : emit(newEvents)
    })
  }

  /** Prepares a run. Invalid inputs do not throw here: the run fails with the error when it is started. */
  #tryRun(
    given: readonly (History | InferenceInput)[],
    options: RunOptions,
  ): StartTurn<Turn<Data, Calls>> {
    try {
      return this.#run(this.#toMessages(given), options)
    } catch (error) {
      const refuse = (): never => {
        throw error
      }
      return this.#run({ messages: [], inputs: [] }, { ...options, refuse })
    }
  }

  #run(
    { messages, inputs }: CallMessages,
    { controller = new AbortController(), signal, strategy, repairs, ...options }: RunOptions,
  ): StartTurn<Turn<Data, Calls>> {
    const task: TurnTask = {
      ...options,
      model: this.model,
      request: { ...this.#base, messages },
      inputs,
      controller,
      signals: [this.#options.signal, signal],
      strategy: strategy ?? this.#options.toolStrategy ?? {},
      middleware: this.#options.middleware ?? [],
      open: this.#options.open,
      check: this.#check,
      repairs: repairs ?? this.#options.repair,
    }
    // UPP §12.2: the type comes from the schema; the data is not validated against it. Results of tools have
    // the types that the tools declare.
    return (emit) => runTurn(task, emit) as Promise<Turn<Data, Calls>>
  }

  #toMessages(given: readonly (History | InferenceInput)[]): CallMessages {
    const { ids, clock } = this.#base
    return toMessages(given, { ids, clock, origin: this.#origin })
  }
}

/** Starts the run of a turn, which reports its events with `emit`, if that is given. */
type StartTurn<Result> = (emit?: EmitEvents<StreamEvent>) => Promise<Result>

type RunOptions = Pick<
  TurnTask,
  'streaming' | 'state' | 'cycle' | 'onFinal' | 'repairs' | 'refuse'
> & {
  readonly controller?: AbortController
  readonly signal?: AbortSignal | undefined
  readonly strategy?: ToolUseStrategy
}

const settingNames = [
  'temperature',
  'maxOutputTokens',
  'topP',
  'stop',
  'seed',
  'topK',
  'toolChoice',
  'parallelToolCalls',
  'reasoning',
] as const satisfies readonly (keyof Settings)[]

/** Returns the settings that have a value as `{ settings }`; `{}` if none has one. */
export function settingsOf(options: Settings): { readonly settings?: Settings } {
  const ownSettings = settingNames.filter((name) => options[name] !== undefined)
  if (ownSettings.length === 0) return {}
  return { settings: Object.fromEntries(ownSettings.map((name) => [name, options[name]])) }
}

function bindModel(reference: ModelReference): BoundLLMModel {
  if (typeof reference === 'string') throw modelName(reference)
  const provider = reference?.provider
  if (typeof provider !== 'function' || !provider.handlers)
    throw invalidValue(
      'llm() was given no model.',
      "Pass a model reference, e.g. llm({ model: openai('gpt-5') }).",
    )
  const handler = provider.handlers.llm
  if (!handler)
    throw invalidRequest(
      `The provider "${provider.name}" has no language models.`,
      { provider: provider.name, modality: 'llm' },
      `It has: ${Object.keys(provider.handlers).join(', ') || 'nothing'}.`,
    )
  return handler.bind(reference)
}

/** The error of a model that is given as text. */
function modelName(text: string): UPPError {
  const [vendor = '', ...rest] = text.split('/')
  const isVendor = rest.length > 0 && /^[a-z][a-z-]*$/.test(vendor)
  const call = isVendor
    ? `${vendor.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())}('${rest.join('/')}')`
    : `openai('${text}')`
  const path = isVendor ? vendor : 'openai'
  return invalidValue(
    `The model is the text "${text}", but it has to be a model of a vendor.`,
    `Write model: ${call}, with the vendor's function from @skein/ai/${path}.`,
  )
}

function anySignal(...signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  const [first, second] = signals.filter((signal) => signal !== undefined)
  if (!first) return new AbortController().signal
  return second ? AbortSignal.any([first, second]) : first
}

/** Throws for tools that are no list or need a thread, and for options that have no effect without another one. */
function checkUse(
  {
    tools = [],
    toolChoice,
    toolStrategy = {},
    params,
    structure,
    repair,
  }: Pick<LLMOptions, 'tools' | 'toolChoice' | 'toolStrategy' | 'repair'> & {
    readonly params?: unknown
    readonly structure?: unknown
  },
  origin: ErrorOrigin,
): void {
  if (!Array.isArray(tools)) {
    const names = typeof tools === 'object' ? Object.keys(tools).join(', ') : '…'
    const hint = `Write tools: [${names}]; each tool has its name: tool({ name, description, parameters, run }).`
    throw invalidRequest('The option tools is not a list.', origin, hint)
  }
  const list = tools as readonly Tool[]
  // A tool without `run` may be one that only the vendor or the caller runs.
  const other = list.findIndex(
    (tool: Tool | undefined | null) => typeof tool?.name !== 'string' || typeof tool !== 'object',
  )
  if (other >= 0)
    throw invalidRequest(
      `Item ${other} of the tools is not a tool.`,
      origin,
      'A tool has a name, a description, parameters and a function `run`.',
    )
  const strange = unknownOptions(toolStrategy, TOOL_STRATEGY_OPTIONS)
  if (strange !== undefined)
    throw invalidRequest(`toolStrategy does not have these options: ${strange}.`, origin)
  const bound = list.find((tool) => THREAD_TOOL in tool)
  if (bound)
    throw invalidRequest(
      `The tool "${bound.name}" is made by defineTool of @skein/runtime, whose code gets the state of a thread. There is no thread here.`,
      origin,
      'Make it with tool({ name, description, parameters, run(args) }) of @skein/ai, which the runtime accepts too.',
    )
  if (repair !== undefined && repair > 0 && structure === undefined)
    throw invalidRequest(
      'The option repair has no effect without structure.',
      origin,
      'Give the shape of the answer as `structure`, and `validate: true` to check it.',
    )
  // Tools of the vendor itself are in `params`, where only the vendor knows their names.
  if (isPlainObject(params) && 'tools' in params) return
  const names = list.map(({ name }) => name)
  checkToolChoiceForm(toolChoice, names, origin)
  if (typeof toolChoice !== 'object') return
  if (names.includes(toolChoice.tool)) return
  const near = closest(String(toolChoice.tool), names)
  throw invalidRequest(
    `toolChoice names the tool "${toolChoice.tool}", which is not among the tools.`,
    origin,
    near !== undefined
      ? `Did you mean "${near}"?`
      : `Tools: ${names.join(', ') || 'none'}. toolChoice takes one of them.`,
  )
}

/** Throws for a tool choice that is neither a known word nor names a tool, e.g. in the form of another SDK. */
function checkToolChoiceForm(choice: unknown, names: readonly string[], origin: ErrorOrigin): void {
  if (choice === undefined || TOOL_CHOICES.some((word) => word === choice)) return
  const { tool, ...other } = isPlainObject(choice) ? choice : {}
  if (tool !== undefined) return
  const values = [choice, ...Object.values(other)]
  const example = names.find((name) => values.includes(name)) ?? '…'
  const what =
    typeof choice === 'string'
      ? `is "${choice}", which is none of ${TOOL_CHOICES.join(', ')}`
      : 'has no tool'
  throw invalidRequest(`toolChoice ${what}.`, origin, `Write toolChoice: { tool: "${example}" }.`)
}

const TOOL_CHOICES = ['auto', 'none', 'required'] as const

/** The names of all options of `toolStrategy`; the type ensures that none is missing. */
const strategyNames: { readonly [Name in keyof ToolUseStrategy]-?: true } = {
  maxIterations: true,
  maxConcurrency: true,
  stopGraceMs: true,
  onToolCall: true,
  onBeforeCall: true,
  onAfterCall: true,
  onError: true,
  onMaxIterations: true,
}

const TOOL_STRATEGY_OPTIONS: OptionNames = {
  known: Object.keys(strategyNames),
  renamed: {
    maxSteps: 'maxIterations',
    maxTurns: 'maxIterations',
    maxRounds: 'maxIterations',
    stopWhen: 'maxIterations',
  },
}

/** The mark of a tool of `defineTool` of `@skein/runtime`, whose code needs the state of a thread. */
const THREAD_TOOL = Symbol.for('skein.thread-tool')

/** Throws for middleware of an agent, which has the same form but other hooks. */
function checkMiddleware(given: readonly Middleware[], origin: ErrorOrigin): void {
  const isOfAgent = (one: Middleware): boolean =>
    ['before', 'after', 'onInference'].some((hook) => hook in one)
  const wrong = given.filter((one) => isOfAgent(one) && !hasModelHooks(one))
  if (wrong.length === 0) return
  throw invalidRequest(
    `The hooks of the middleware ${wrong.map(({ name }) => `"${name}"`).join(', ')} would never be called: they are those of an agent.`,
    origin,
    'Pass it to agent({ middleware }). Middleware of the model has onRequest, onResponse, wrapInference and others.',
  )
}
