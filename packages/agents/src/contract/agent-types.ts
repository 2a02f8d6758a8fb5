import type { Clock, IdSource, JsonObject } from '@skein/base'
import type {
  LLMInstance,
  LLMOptions,
  Message,
  Middleware as LLMMiddleware,
  ModelReference,
  Params,
  TokenUsage,
  Tool,
  ToolCall,
  ToolExecution,
  Turn,
} from '@skein/ai'
import type { Answers, Interrupt, RunTotals } from '../state/state-types.ts'
import type { AgentState } from '../state/state.ts'
import type { CheckpointStore, StepEffect } from './checkpoint-store.ts'
import type {
  AgentContext,
  AgentLineage,
  AgentStopReason,
  AgentStreamEvent,
  AnyCalls,
  UAPEventData,
} from './event.ts'

// An agent has a strategy, and both strategies and middleware get the agent. These types refer to each other,
// so they are in one file; otherwise two files would import each other.

/**
 * The settings of an agent (UAP §4.2): all options of `llm()` and some more. `middleware` wraps runs of the
 * agent; middleware of the model goes in `llmMiddleware`.
 */
export interface AgentOptions<
  Data = unknown,
  Model extends ModelReference = ModelReference,
  T extends Tool = Tool,
> extends Omit<LLMOptions<Data, T, Model>, 'middleware'> {
  readonly model: Model
  /** Default: `loop()`. */
  readonly execution?: ExecutionStrategy
  readonly middleware?: readonly Middleware[]
  readonly llmMiddleware?: readonly LLMMiddleware[]
  readonly strategy?: AgentStrategy
  /** The store in which the state is saved after each step. */
  readonly checkpoints?: CheckpointStore
  /** Default: the session id in the state's metadata, otherwise a new id for each fresh state. */
  readonly sessionId?: string
  /** `async` (default): a run never waits for a save. `sync`: each step waits until its state is saved. */
  readonly durability?: 'async' | 'sync'
  /** Called with the error of each save that failed. Default: `console.error`. */
  readonly onCheckpointError?: (error: unknown, sessionId: string) => void
}

/** Options of an agent without a model: as a sub-agent it runs with its caller's model (UAP §8.4). */
export type ModellessOptions<
  Data = unknown,
  Model extends ModelReference = ModelReference,
  T extends Tool = Tool,
> = Omit<AgentOptions<Data, Model, T>, 'model'> & {
  readonly model?: Model
}

/**
 * A pure function of input and state (UAP §4.3). An agent keeps no state between calls. Its options are its
 * properties, so that `agent({ ...other, execution: react() })` makes a variant.
 *
 * `Calls` are the types of the results of its tools, by name. Turns of `resume` do not have them, because an
 * answer of type `result` is whatever the person gave.
 */
export interface Agent<
  Data = unknown,
  Calls extends AnyCalls = AnyCalls,
  T extends Tool = Tool,
> extends AgentOptions {
  readonly id: string
  readonly tools: readonly T[]
  generate(
    input: AgentInput,
    state: AgentState,
    options?: RunOptions,
  ): Promise<GenerateResult<Data, Calls>>
  stream(input: AgentInput, state: AgentState, options?: RunOptions): AgentRun<Data, Calls>
  /** Like `generate`, but the state contains the whole exchange even if a strategy left messages out. */
  ask(
    input: AgentInput,
    state: AgentState,
    options?: RunOptions,
  ): Promise<GenerateResult<Data, Calls>>
  /** Answers once, starting from an empty state; the resulting state is dropped. */
  query(input: AgentInput, options?: RunOptions): Promise<Turn<Data, Calls>>
  /**
   * Continues a run that was interrupted or whose process died. Calls without a result are run, whereas
   * `generate` gives them error results.
   */
  resume(state: AgentState, answers?: Answers, options?: RunOptions): Promise<GenerateResult<Data>>
  resumeStream(state: AgentState, answers?: Answers, options?: RunOptions): AgentRun<Data>
  /** Waits until all queued checkpoints are saved. */
  flush(): Promise<void>
}

/** An agent whose model is missing or optional: it can be spread, or run as a sub-agent. */
export type ModellessAgent<
  Data = unknown,
  Calls extends AnyCalls = AnyCalls,
  T extends Tool = Tool,
> = Omit<Agent<Data, Calls, T>, 'model'> & {
  readonly model?: ModelReference
}

/** The input of an agent: a text, which becomes a user message, or a message. */
export type AgentInput = string | Message

/** Options of one call of an agent. */
export interface RunOptions {
  readonly signal?: AbortSignal
  /** Initial entries of the middleware's `metadata`. */
  readonly metadata?: Readonly<Record<string, unknown>>
  /** The context of the tool that runs this agent. It only records the caller; no settings are inherited. */
  readonly parentContext?: AgentContext
  /** Awaited before and after each inference and each call, so that a journal can record them. */
  readonly commit?: (effect: StepEffect) => void | Promise<void>
}

/** What a run returns: the turn, and the state to continue from. */
export interface GenerateResult<Data = unknown, Calls extends AnyCalls = AnyCalls> {
  readonly turn: Turn<Data, Calls>
  readonly state: AgentState
  /** Set when calls wait for an answer: pass the state and the answers to `resume`. */
  readonly interrupts?: readonly Interrupt[]
  /** Why the run ended. An application's own strategy may leave it out. */
  readonly stopReason?: AgentStopReason
}

/**
 * A streamed run (UAP §11.1). The run starts when its events or `result` are first read. Leaving the loop
 * over the events early aborts the run; a failure that nothing handles never causes an unhandled rejection.
 */
export interface AgentStreamResult<
  Data = unknown,
  Calls extends AnyCalls = AnyCalls,
> extends AsyncIterable<AgentStreamEvent<Calls>> {
  readonly result: Promise<GenerateResult<Data, Calls>>
  abort(reason?: unknown): void
}

/** The stream that agents and the built-in strategies return. */
export interface AgentRun<
  Data = unknown,
  Calls extends AnyCalls = AnyCalls,
> extends AgentStreamResult<Data, Calls> {
  /** The state after the last completed step, also of a run that was aborted or failed. */
  readonly state: AgentState
  /**
   * Adds a message before the next inference. A run that was about to end continues with it, unless its limit of
   * steps is reached. Throws INVALID_REQUEST if the run is over, because no step would read the message.
   */
  steer(message: AgentInput): void
}

/** Decides how an agent works (UAP §5.1). Implement both methods, or wrap a built-in strategy. */
export interface ExecutionStrategy {
  readonly name: string
  execute(context: ExecutionContext): Promise<ExecutionResult>
  stream(context: ExecutionContext): AgentStreamResult
}

/** The result of a strategy. It has the same form as the result of a run. */
export type ExecutionResult = GenerateResult

/** The input of a strategy. UAP §5.1 names the first seven fields; the others are extensions. */
export interface ExecutionContext extends Partial<AgentLineage> {
  readonly agent: Agent
  readonly llm: LLMInstance
  readonly input: Message
  readonly state: AgentState
  readonly tools: readonly Tool[]
  readonly strategy: AgentStrategy
  readonly signal?: AbortSignal
  /** Set when a suspended or restored run continues; there is no new input then. */
  readonly resume?: { readonly answers: Answers }
  /** Saves a state; the built-in strategies call it after each `step_end`. */
  readonly checkpoint?: (state: AgentState) => void | Promise<void>
  /** Returns the save conflicts (another run has saved the same session) since this function was last called. */
  readonly takeConflicts?: () => readonly UAPEventData['checkpoint_conflict'][]
  /** Returns the messages to add before the next inference. Each message is returned once. */
  readonly takeSteering?: () => readonly Message[]
  readonly commit?: (effect: StepEffect) => void | Promise<void>
  /** Deletes the session of a sub-agent whose call has a result; called after `checkpoint`. */
  readonly endSession?: (store: CheckpointStore, sessionId: string) => void | Promise<void>
  /** Returns the given saves and deletions of a sub-agent if the run must wait for them; otherwise `flush` does. */
  readonly settle?: (work: Promise<void>) => void | Promise<void>
  /** A stop condition besides the one in `strategy`, e.g. the caller's budget. */
  readonly shouldStop?: (totals: RunTotals) => boolean | Promise<boolean>
  readonly clock?: Clock
  readonly ids?: IdSource
}

/** What a hook returns: a value or nothing, now or later. */
type Answered<T = void> = void | T | Promise<void | T>

/** Hooks at the steps of a run (UAP §10). Each is awaited; if one throws, the run fails. */
export interface AgentStrategy {
  /** Called after every step. Returning true ends the run. */
  readonly stopCondition?: (state: AgentState, totals: RunTotals) => boolean | Promise<boolean>
  readonly onStepStart?: (step: number, state: AgentState) => void | Promise<void>
  readonly onReason?: (step: number, reasoning: string) => void | Promise<void>
  /** Called before each inference, after the middleware's hooks; what it returns changes that inference. */
  readonly onInference?: InferenceHook
  /** Called after the inference, before any tool starts. */
  readonly onAct?: (step: number, actions: readonly ToolCall[]) => void | Promise<void>
  /** Called after all tools of the step. */
  readonly onObserve?: (step: number, observations: readonly ToolExecution[]) => Answered
  /** If `onStepEnd` returns a state, that replaces the state of the run. */
  readonly onStepEnd?: (
    step: number,
    result: { readonly turn: Turn; readonly state: AgentState },
  ) => Answered<AgentState>
  /** Called when the run is over; not when it waits for an answer. */
  readonly onComplete?: (result: GenerateResult) => void | Promise<void>
  /** If `onError` returns a result, that becomes the result of the run. */
  readonly onError?: (error: Error, state: AgentState) => Answered<GenerateResult>
}

/**
 * Called before each inference: sees the request that would be sent to the model and may return other
 * messages, tools, params or another model. The built-in strategies call it; a strategy of the application
 * may not.
 */
export type InferenceHook = (request: InferenceRequest) => Answered<InferenceChanges>

/** The request that the next inference of a run would send to the model. */
export interface InferenceRequest {
  readonly step: number
  /** The number of this inference in its run, from 1. */
  readonly cycle: number
  /** The state of the run, with its whole history, even if a hook has shortened `messages`. */
  readonly state: AgentState
  /**
   * The messages to send: the whole history, or the messages that an earlier hook of this run returned,
   * followed by the messages that were added after that.
   */
  readonly messages: readonly Message[]
  /** How many messages at the end are new input, which no model has seen yet. */
  readonly inputs: number
  readonly tools: readonly Tool[]
  readonly model: ModelReference
  readonly params: Params
  /** The messages that the last inference of this run sent, and the vendor's count of its tokens. */
  readonly last?: { readonly messages: readonly Message[]; readonly usage: TokenUsage }
}

/** The changes to one inference. */
export interface InferenceChanges {
  /** Replaces the messages for the rest of the run; the state keeps the original ones. */
  readonly messages?: readonly Message[]
  /** The tools of this step only. */
  readonly tools?: readonly Tool[]
  /** The model of this step only. */
  readonly model?: ModelReference
  /** The params of this step only, in place of the agent's, e.g. the vendor's field for the tool choice. */
  readonly params?: Params
  /** Entries for the metadata of the state, saved with it. */
  readonly metadata?: JsonObject
}

/** Wraps whole runs (UAP §9): `before` is called in the order of the list, `after` and `onError` in reverse. */
export interface Middleware {
  readonly name: string
  /** May return a changed context, with another input or state. */
  before?(context: MiddlewareContext): Answered<MiddlewareContext>
  after?(context: MiddlewareContext, result: GenerateResult): Answered<GenerateResult>
  /** If `onError` returns a result, that becomes the run's result, also for `after` of outer middleware. */
  onError?(context: MiddlewareContext, error: Error): Answered<GenerateResult>
  /** Called before each inference of a built-in strategy, in the order of the middleware. */
  onInference?: InferenceHook
}

/** The context that middleware gets. */
export interface MiddlewareContext {
  readonly agent: Agent
  readonly input: Message
  readonly state: AgentState
  /** Data of this run: a Map whose entries are also properties, e.g. `metadata.startTime = 1`. */
  readonly metadata: MiddlewareMetadata
}

/** Data shared by the middleware of one run. Values are typed as unknown, so that readers check them. */
export type MiddlewareMetadata = Map<string, unknown> & { [name: string]: unknown }
