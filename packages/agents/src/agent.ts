import { uuidV4 } from '@skein/base'
import type {
  LLMOptions,
  Message,
  Middleware as LLMMiddleware,
  ModelReference,
  Tool,
  Turn,
} from '@skein/ai'
import type { CheckpointStore } from './checkpoint.ts'
import type { AgentStreamEvent } from './event.ts'
import type { ExecutionStrategy, StepEffect } from './execution.ts'
import type { Answers, Interrupt } from './interrupt.ts'
import type { Middleware } from './middleware.ts'
import type { AgentState } from './state.ts'
import type { AgentStrategy } from './strategy.ts'
import type { AgentContext } from './tool-context.ts'
import { agentMethods } from './agent-methods.ts'
import { AgentCore, checkTools, withoutLimit } from './agent-core.ts'

/**
 * What an agent is made of (UAP §4.2): all options of `llm()` and its own. Only `middleware` means
 * the agent's; the model's middleware is `llmMiddleware`.
 */
export interface AgentOptions<Data = unknown> extends Omit<LLMOptions<Data>, 'middleware'> {
  readonly model: ModelReference
  /** Default: `loop()`. */
  readonly execution?: ExecutionStrategy
  readonly middleware?: readonly Middleware[]
  readonly llmMiddleware?: readonly LLMMiddleware[]
  readonly strategy?: AgentStrategy
  /** Saves the state after each step. */
  readonly checkpoints?: CheckpointStore
  /** Default: that of the state, else one made for this agent. */
  readonly sessionId?: string
  /** `async` (default): saving never holds up the run. `sync`: each step waits until it is saved. */
  readonly durability?: 'async' | 'sync'
  /** Told of saves that failed. Default: `console.error`. */
  readonly onCheckpointError?: (error: unknown, sessionId: string) => void
}

/** An agent without a model of its own: it runs as a sub-agent, with its caller's (UAP §8.4). */
export type ModellessOptions<Data = unknown> = Omit<AgentOptions<Data>, 'model'> & {
  readonly model?: ModelReference
}

/**
 * A pure function of input and state (UAP §4.3). It keeps nothing between calls. Its options are its
 * own properties, so that `agent({ ...other, execution: react() })` makes a variant.
 */
export interface Agent<Data = unknown> extends AgentOptions<Data> {
  readonly id: string
  readonly tools: readonly Tool[]
  generate(
    input: AgentInput,
    state: AgentState,
    options?: RunOptions,
  ): Promise<GenerateResult<Data>>
  stream(input: AgentInput, state: AgentState, options?: RunOptions): AgentRun<Data>
  /** Like `generate`; the state holds the whole exchange even if a strategy forgot some of it. */
  ask(input: AgentInput, state: AgentState, options?: RunOptions): Promise<GenerateResult<Data>>
  /** One answer from an empty state, which is then thrown away. */
  query(input: AgentInput, options?: RunOptions): Promise<Turn<Data>>
  /** Goes on with a run that was interrupted, or whose process died: open calls are run, not closed. */
  resume(state: AgentState, answers?: Answers, options?: RunOptions): Promise<GenerateResult<Data>>
  resumeStream(state: AgentState, answers?: Answers, options?: RunOptions): AgentRun<Data>
  /** Waits until everything that was to be saved is saved. */
  flush(): Promise<void>
}

export type ModellessAgent<Data = unknown> = Omit<Agent<Data>, 'model'> & {
  readonly model?: ModelReference
}

export type AgentInput = string | Message

/** Of one call. */
export interface RunOptions {
  readonly signal?: AbortSignal
  /** Put into the middleware's `metadata`. */
  readonly metadata?: Readonly<Record<string, unknown>>
  /** The context of the tool that runs this agent: who called whom. It inherits nothing. */
  readonly parentContext?: AgentContext
  /** Awaited before and after each inference and each call, so that a journal can make it durable. */
  readonly commit?: (effect: StepEffect) => void | Promise<void>
}

export interface GenerateResult<Data = unknown> {
  readonly turn: Turn<Data>
  readonly state: AgentState
  /** Set when calls wait for an answer: pass the state and the answers to `resume`. */
  readonly interrupts?: readonly Interrupt[]
  /** Why the run ended. Strategies of your own need not tell. */
  readonly stopReason?: AgentStopReason
}

export const AgentStopReason = {
  /** The model had nothing more to do. */
  Complete: 'complete',
  MaxIterations: 'max_iterations',
  MaxSteps: 'max_steps',
  StopCondition: 'stop_condition',
  Interrupted: 'interrupted',
} as const
export type AgentStopReason = (typeof AgentStopReason)[keyof typeof AgentStopReason]

/**
 * A run while it happens (UAP §11.1). It starts with the first read of events or of `result`.
 * Leaving the loop early aborts it; a failure that nobody looks at is never an unhandled rejection.
 */
export interface AgentStreamResult<Data = unknown> extends AsyncIterable<AgentStreamEvent> {
  readonly result: Promise<GenerateResult<Data>>
  abort(reason?: unknown): void
}

/** What agents and the built-in strategies give. */
export interface AgentRun<Data = unknown> extends AgentStreamResult<Data> {
  /** After the last completed step; what an aborted or failed run leaves behind. */
  readonly state: AgentState
  /** Adds a message before the next inference; a run that was about to end goes on with it. */
  steer(message: AgentInput): void
}

/**
 * Defines an agent (UAP §4.1).
 *
 *     const coder = agent({ model: anthropic('claude-sonnet-4-5'), tools: [bash, read] })
 *     const { turn, state } = await coder.generate('Fix the bug', AgentState.initial())
 */
export function agent<Data = unknown>(options: AgentOptions<Data>): Agent<Data>
/** Without a model: for use as a sub-agent, or spread into another agent's options. */
export function agent<Data = unknown>(options: ModellessOptions<Data>): ModellessAgent<Data>
export function agent(options: ModellessOptions): Agent {
  const { tools = [], toolStrategy, ids = uuidV4 } = options
  checkTools(tools)
  const core = new AgentCore(options)
  // The options are its own properties, so that they travel when it is spread; ids do not (A21).
  core.agent = Object.freeze({
    ...pickOptions(options),
    tools: Object.freeze([...tools]),
    ...(toolStrategy && { toolStrategy: withoutLimit(toolStrategy) }),
    id: ids(),
    ...agentMethods(core),
  }) as Agent // without a model only as a ModellessAgent, which the overload says
  return core.agent
}

const optionNames = [
  'model',
  'config',
  'params',
  'system',
  'structure',
  'signal',
  'clock',
  'ids',
  'execution',
  'middleware',
  'llmMiddleware',
  'strategy',
  'checkpoints',
  'sessionId',
  'durability',
  'onCheckpointError',
] as const satisfies readonly (keyof AgentOptions)[]

/** What was given, without the methods and the id of an agent that was spread. */
function pickOptions(options: ModellessOptions): Partial<AgentOptions> {
  const given = optionNames.filter((name) => options[name] !== undefined)
  return Object.fromEntries(given.map((name) => [name, options[name]]))
}
