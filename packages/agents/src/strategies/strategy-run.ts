import { type Clock, type IdSource, systemClock, uuidV4 } from '@skein/base'
import {
  addUsage,
  type AssistantMessage,
  isAssistantMessage,
  type LLMInstance,
  type Message,
  succeededTools,
  type TokenUsage,
  type Tool,
  type ToolCall,
  ToolResultMessage,
  type UPPError,
  UserMessage,
  zeroUsage,
} from '@skein/ai'
import { codeError, throwIfAborted, awaitUnlessAborted } from '../contract/agent-error.ts'
import type {
  AgentContext,
  AgentStrategy,
  ExecutionContext,
  ExecutionResult,
  InferenceChanges,
  InferenceRequest,
  RunTotals,
} from '../contract/agent-types.ts'
import {
  type AgentStopReason,
  type AgentStreamEvent,
  uapEvent,
  type UAPEventData,
  type UAPEventType,
} from '../contract/event.ts'
import type { Answers, Interrupt } from '../state/state-types.ts'
import type { AgentState } from '../state/state.ts'
import { openCallsOf, repairHistory } from '../state/transcript.ts'
import type { Batches, SubagentSink } from '../step/live-events.ts'
import { step as runStep, type StepResult } from '../step/step.ts'
import { hooksOf } from './hooks.ts'
import { RunRecord } from './run-record.ts'

/** Settings of one inference that differ from the agent's. */
interface AskOptions {
  readonly llm?: LLMInstance
  readonly runsTools?: boolean
}

/** What one inference is asked with, after the `onInference` hooks. */
interface InferenceSettings {
  readonly llm: LLMInstance
  readonly tools: readonly Tool[]
  readonly messages: readonly Message[]
}

/**
 * A run of a built-in strategy: its state, its record, and the operations that strategies consist of
 * (`beginStep`, `ask`, `endStep`). `loop`, `react` and `plan` differ only in how they arrange these.
 */
export class StrategyRun {
  state: AgentState
  /** Number of the current step. */
  step: number
  /** The number of steps that this call of the agent has started, and of tool rounds it has run. */
  steps = 0
  rounds = 0
  interrupts: readonly Interrupt[] = []
  readonly context: ExecutionContext
  readonly streaming: boolean
  readonly record: RunRecord = new RunRecord()
  readonly #hooks: AgentStrategy
  readonly #agentId: string
  readonly #clock: Clock
  readonly #ids: IdSource
  readonly #middlewareState = new Map<string, unknown>()
  readonly #succeeded: Set<string> | undefined
  readonly #rootId: string
  #answers: Answers
  #inputs = 0
  #steering: readonly Message[] = []
  /** Tokens of sub-agents in finished steps; those of the current step are in `#running`. */
  #spent: TokenUsage = zeroUsage
  #running: SubagentSink | undefined
  /** The number of inferences, what the last one was sent, and the history at that time. */
  #cycle = 0
  #last: InferenceRequest['last']
  #sent: { readonly history: readonly Message[]; readonly messages: readonly Message[] } | undefined

  constructor(context: ExecutionContext, streaming: boolean) {
    this.context = context
    this.streaming = streaming
    this.state = context.state
    this.step = context.resume ? context.state.step : 0
    this.#hooks = hooksOf(context.strategy)
    this.#agentId = context.agentId ?? context.agent.id
    this.#clock = context.clock ?? systemClock
    this.#ids = context.ids ?? uuidV4
    this.#answers = context.resume?.answers ?? {}
    this.#rootId = context.sessionId ?? context.state.id
    this.#open()
    if (context.tools.some((tool) => tool.dependsOn))
      this.#succeeded = succeededTools(this.state.messages)
  }

  /** True when a resumed state ends with open calls, so that its step is not finished. */
  get hasOpenCalls(): boolean {
    return openCallsOf(this.state.messages).length > 0
  }

  /** True when a resumed state ends with an answer, so that nothing is left to do. */
  get isAnswered(): boolean {
    return this.state.messages.at(-1)?.type === 'assistant' && !this.hasOpenCalls
  }

  /**
   * Whether another tool round is allowed. The tool strategy's limit is
   * for the whole run (UAP §2.4: none by default).
   */
  get mayRunTools(): boolean {
    return this.rounds < (this.context.agent.toolStrategy?.maxIterations ?? Infinity)
  }

  /** Returns why the run ends after an inference, if the model or a limit ends it. */
  async endAfter({ turn, openCalls }: StepResult): Promise<AgentStopReason | undefined> {
    if (this.state.suspension) return 'interrupted'
    if (openCalls.length === 0) return turn && !turn.response.hasToolCalls ? 'complete' : undefined
    // With a limit of 0 the application runs the calls itself, so `onMaxIterations` is not called.
    if (!this.mayRunTools && this.rounds > 0) {
      const { toolStrategy } = this.context.agent
      try {
        await awaitUnlessAborted(toolStrategy?.onMaxIterations?.(this.rounds), this.context.signal)
      } catch (error) {
        throw codeError(error, 'onMaxIterations of the tool strategy')
      }
    }
    return 'max_iterations'
  }

  /** Repairs the history so that vendors accept it, and adds the new input. */
  #open(): void {
    const { resume, input } = this.context
    const sources = { ids: this.#ids, clock: this.#clock }
    const { messages, suspension } = this.state
    const known = suspension?.answered?.results ?? []
    const repaired = repairHistory(messages, { known, keepsTail: resume !== undefined, sources })
    if (repaired !== messages) this.state = this.state.withContext(repaired)
    if (resume) return
    if (suspension) this.state = this.state.withSuspension(undefined)
    this.add([input])
  }

  /** Adds messages that are sent with the next inference. */
  add(messages: readonly Message[]): void {
    if (messages.length === 0) return
    this.state = this.state.withMessages(messages)
    this.record.addMessages(messages)
    this.#inputs += messages.length
  }

  /** Adds a prompt of the strategy itself. It stays in the history, marked as synthetic. */
  prompt(text: string, phase: string): void {
    const uap = { synthetic: true, phase, step: this.step }
    this.add([new UserMessage(text, { metadata: { uap }, ids: this.#ids, clock: this.#clock })])
  }

  /** Starts a step. A resumed step that has open calls keeps its number. */
  async *beginStep(phase?: 'plan' | 'execute'): Batches<void> {
    const { signal } = this.context
    throwIfAborted(signal)
    const goesOn = this.steps === 0 && this.context.resume !== undefined && this.hasOpenCalls
    if (!goesOn) this.step++
    this.steps++
    this.record.beginStep()
    if (!goesOn) this.add([...this.#steering, ...(this.context.takeSteering?.() ?? [])])
    this.#steering = []
    this.state = this.state.withStep(this.step)
    await this.hook('onStepStart', (hooks) => hooks.onStepStart?.(this.step, this.state))
    yield* this.emit('step_start', phase ? { phase } : {})
  }

  /** Runs one inference with its tools, or the open calls of a resumed state. */
  async *ask({
    llm: given = this.context.llm,
    runsTools = true,
  }: AskOptions = {}): Batches<StepResult> {
    const { signal, commit, agent } = this.context
    const { llm, tools, messages } = this.hasOpenCalls
      ? { llm: given, tools: this.context.tools, messages: undefined }
      : await this.#prepare(given)
    const result = yield* runStep({
      state: this.state,
      llm,
      tools,
      messages,
      cycle: this.#cycle,
      runsTools,
      inputs: this.#inputs,
      step: this.step,
      agentId: this.#agentId,
      streaming: this.streaming,
      signal,
      commit,
      answers: this.#answers,
      succeeded: this.#succeeded,
      toolStrategy: agent.toolStrategy,
      context: (call, state) =>
        agentContext({ ...this.context, state }, call, {
          step: this.step,
          streaming: this.streaming,
          root: this.#rootId,
          shouldStop: (spent) => this.#wouldStop(spent),
        }),
      hooks: this.#stepHooks,
      middlewareState: this.#middlewareState,
      onSubagents: (sink) => (this.#running = sink),
      clock: this.#clock,
      ids: this.#ids,
    })
    if (messages && result.turn) {
      const usage = result.turn.usageByCycle?.at(-1) ?? result.turn.usage
      this.#last = { messages, usage }
    }
    this.#note(result)
    return result
  }

  /**
   * Calls the `onInference` hooks and returns the model, the tools and the messages of the next inference. The
   * state keeps its whole history. Replaced messages stay in force for the rest of the run, as long as the
   * history only grows.
   */
  async #prepare(given: LLMInstance): Promise<InferenceSettings> {
    const { agent, tools } = this.context
    this.#cycle++
    let request: InferenceRequest = {
      step: this.step,
      cycle: this.#cycle,
      state: this.state,
      messages: this.#view(),
      inputs: this.#inputs,
      tools,
      model: agent.model,
      params: agent.params ?? {},
      last: this.#last,
    }
    let changes: InferenceChanges = {}
    const apply = (more: InferenceChanges | void): void => {
      if (!more) return
      for (const [name, value] of Object.entries(more.metadata ?? {}))
        this.state = this.state.withMetadata(name, value)
      changes = { ...changes, ...more }
      request = { ...request, ...more, state: this.state }
    }
    for (const one of agent.middleware ?? []) {
      if (!one.onInference) continue
      try {
        apply(await awaitUnlessAborted(one.onInference(request), this.context.signal))
      } catch (error) {
        throw codeError(error, `onInference of the middleware "${one.name}"`)
      }
    }
    apply(await this.hook('onInference', (hooks) => hooks.onInference?.(request)))
    const sources = { ids: this.#ids, clock: this.#clock }
    const messages = repairHistory(request.messages, { sources })
    this.#sent = { history: this.state.messages, messages }
    const isPlanner = given !== this.context.llm // a planner has its own tools, which no hook replaces
    const { model, params, tools: chosen } = changes
    const settings = Object.entries({ model, params, tools: isPlanner ? undefined : chosen })
    const changed = Object.fromEntries(settings.filter(([, value]) => value !== undefined))
    const isChanged = Object.keys(changed).length > 0 && typeof given.with === 'function'
    return {
      llm: isChanged ? given.with(changed) : given,
      tools: isPlanner ? tools : request.tools,
      messages,
    }
  }

  /** The messages as earlier hooks of this run left them, and those that are new since. */
  #view(): readonly Message[] {
    const { messages } = this.state
    const { history, messages: sent } = this.#sent ?? {}
    const isLonger =
      history &&
      messages.length >= history.length &&
      messages[0] === history[0] &&
      messages[history.length - 1] === history.at(-1)
    return isLonger && sent && sent !== history
      ? [...sent, ...messages.slice(history.length)]
      : messages
  }

  #note(result: StepResult): void {
    const { turn, messages, executions, warnings, openCalls, interrupts } = result
    this.state = result.state
    this.#answers = {}
    this.#inputs = 0
    if (turn) this.record.addInference(turn, messages)
    else this.record.addMessages(messages)
    this.record.addExecutions(executions, warnings)
    this.record.openCalls = openCalls
    this.interrupts = interrupts
    if (executions.length > 0) this.rounds++
    for (const { toolName, isError } of executions) if (!isError) this.#succeeded?.add(toolName)
    if (this.#running) this.#spent = addUsage(this.#spent, this.#running.usage)
    this.#running = undefined
  }

  /**
   * Ends a step: calls `onStepEnd`, checks the stop conditions, yields `step_end` and saves the state.
   * Returns why the run ends after this step, or undefined if the run continues.
   */
  async *endStep(end?: AgentStopReason): Batches<AgentStopReason | undefined> {
    const adopted = await this.hook('onStepEnd', (hooks) => {
      const turn = this.record.stepTurn(this.#lastAnswer())
      return hooks.onStepEnd?.(this.step, { turn, state: this.state })
    })
    if (adopted) this.#adopt(adopted)
    const stopReason = await this.#isOver(end)
    yield* this.#reportConflicts()
    const usage = this.record.stepUsage
    try {
      yield* this.emit('step_end', stopReason ? { usage, stopReason } : { usage })
    } finally {
      // In `finally`, because the reader may leave at this event, and the finished step must still be saved.
      await awaitUnlessAborted(this.context.checkpoint?.(this.state), this.context.signal)
    }
    yield* this.#reportConflicts()
    return stopReason
  }

  /** Reports conflicts of saves: as events, and as warnings of the turn. */
  *#reportConflicts(): Generator<readonly AgentStreamEvent[]> {
    for (const conflict of this.context.takeConflicts?.() ?? []) {
      const { sessionId } = conflict
      const message = `The session ${JSON.stringify(sessionId)} was saved by somebody else during this run.`
      this.record.addExecutions([], [{ code: 'checkpoint_conflict', message }])
      yield* this.emit('checkpoint_conflict', conflict)
    }
  }

  /** Returns why the run ends. A steering message keeps a run going that was about to complete. */
  async #isOver(end: AgentStopReason | undefined): Promise<AgentStopReason | undefined> {
    if (end === 'interrupted') return end
    if (await this.#stops()) return 'stop_condition'
    if (end !== 'complete') return end
    this.#steering = this.context.takeSteering?.() ?? []
    return this.#steering.length > 0 ? undefined : end
  }

  async #stops(): Promise<boolean> {
    const { shouldStop, signal } = this.context
    const own = await this.hook('stopCondition', (hooks) =>
      hooks.stopCondition?.(this.state, this.#totals()),
    )
    if (own === true || !shouldStop) return own === true
    return (await awaitUnlessAborted(shouldStop(this.#totals()), signal)) === true
  }

  #adopt(state: AgentState): void {
    const sources = { ids: this.#ids, clock: this.#clock }
    const repaired = repairHistory(state.messages, { keepsTail: true, sources })
    this.state = repaired === state.messages ? state : state.withContext(repaired)
  }

  /** Returns what this call has done so far. The turn is only made when it is read. */
  #totals(): RunTotals {
    const { record, steps } = this
    const answer = this.#lastAnswer()
    return {
      get turn() {
        return record.turn(answer)
      },
      usage: this.#usage(),
      steps,
    }
  }

  #usage(): TokenUsage {
    const spent = this.#running ? addUsage(this.#spent, this.#running.usage) : this.#spent
    return addUsage(this.record.usage, spent)
  }

  /** Returns the result of a run that ends now. */
  result(stopReason: AgentStopReason): ExecutionResult {
    const turn = this.record.turn(this.#lastAnswer())
    const interrupts = stopReason === 'interrupted' ? this.state.interrupts : []
    const result = { turn, state: this.state, stopReason }
    return Object.freeze(interrupts.length > 0 ? { ...result, interrupts } : result)
  }

  /** Gives open calls a result without running them, so that every call in the history has one. */
  closeCalls(result: string, isError: boolean): void {
    const calls = openCallsOf(this.state.messages)
    if (calls.length === 0) return
    const results = calls.map(({ toolCallId, toolName }) => ({
      toolCallId,
      toolName,
      result,
      isError,
    }))
    const message = new ToolResultMessage(results, { ids: this.#ids, clock: this.#clock })
    this.state = this.state.withMessages([message])
    this.record.addMessages([message])
    this.record.openCalls = []
  }

  /** Stores what a failed inference produced, for a run that continues after the failure. */
  keepPartial({ turn }: UPPError): void {
    if (!turn) return
    this.state = this.state.withMessages(turn.messages)
    this.record.addInference(turn, turn.messages)
    this.#inputs = 0
    this.closeCalls('The answer was not complete.', true)
  }

  /** Returns the error of a failed run; its `turn` is what the run produced before. */
  fail(error: unknown): UPPError {
    const failure = codeError(error, 'The run')
    const partial = failure.turn
    if (partial) this.record.addInference(partial, partial.messages)
    failure.turn = this.record.turn(this.#lastAnswer())
    return failure
  }

  #lastAnswer(): AssistantMessage | undefined {
    return this.record.hasAnswer ? undefined : this.state.messages.findLast(isAssistantMessage)
  }

  /** Yields an event of the current step, if the run is streamed. */
  *emit<Type extends UAPEventType>(
    type: Type,
    data: UAPEventData[Type],
  ): Generator<readonly AgentStreamEvent[]> {
    if (!this.streaming) return
    yield [uapEvent({ step: this.step, agentId: this.#agentId }, type, data)]
  }

  /** Runs a hook of the application. An error message names the hook that threw. */
  async hook<T>(
    name: keyof AgentStrategy,
    call: (hooks: AgentStrategy) => T | Promise<T>,
  ): Promise<T | undefined> {
    if (!this.#hooks[name]) return undefined
    try {
      return await awaitUnlessAborted(call(this.#hooks), this.context.signal)
    } catch (error) {
      throw codeError(error, `${name} of the agent's strategy`)
    }
  }

  readonly #stepHooks: Pick<Required<AgentStrategy>, 'onAct' | 'onObserve'> = {
    onAct: async (step, actions) =>
      void (await this.hook('onAct', (hooks) => hooks.onAct?.(step, actions))),
    onObserve: async (step, observations) =>
      void (await this.hook('onObserve', (hooks) => hooks.onObserve?.(step, observations))),
  }

  async #wouldStop(spent: TokenUsage): Promise<boolean> {
    const { turn, usage, steps } = this.#totals()
    const totals = { turn, usage: addUsage(usage, spent), steps }
    const stops = await this.hook('stopCondition', (hooks) =>
      hooks.stopCondition?.(this.state, totals),
    )
    return stops === true || (await this.context.shouldStop?.(totals)) === true
  }
}

/**
 * Returns the fields that an agent adds to a tool's context (UAP §8.4, UAP §8.7), for tools whose `run` has a
 * second parameter.
 */
export function agentContext(
  { agent, state, sessionId, parentContext }: ExecutionContext,
  { toolCallId }: Pick<ToolCall, 'toolCallId'>,
  { root, ...facts }: RunFacts,
): Partial<AgentContext> {
  return {
    parentModel: agent.model,
    parentConfig: agent.config,
    agentId: agent.id,
    stateId: state.id,
    sessionId,
    parentContext,
    ...facts,
    idempotencyKey: `${root}:${toolCallId}`,
  }
}

/** Data about the run that its execution context does not contain. */
interface RunFacts extends Pick<AgentContext, 'step' | 'streaming' | 'shouldStop'> {
  /** Distinguishes calls of different runs: the session id, or the id of the state the run started with. */
  readonly root: string
}
