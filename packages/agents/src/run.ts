import { systemClock, uuidV4, type Clock, type IdSource } from '@skein/base'
import {
  addUsage,
  ToolResultMessage,
  UserMessage,
  zeroUsage,
  type AssistantMessage,
  type LLMInstance,
  type Message,
  type TokenUsage,
  type UPPError,
} from '@skein/ai'
import type { AgentStopReason } from './agent.ts'
import { codeError } from './agent-error.ts'
import { interruptsOf } from './answers.ts'
import { hooksOf } from './checkpoint-hooks.ts'
import type { AgentStreamEvent, UAPEventData, UAPEventType } from './event.ts'
import type { ExecutionContext, ExecutionResult } from './execution.ts'
import type { Answers, Interrupt } from './interrupt.ts'
import { agentContext } from './agent-context.ts'
import { RunRecord } from './run-record.ts'
import type { AgentState } from './state.ts'
import { step as runStep, uapEvent, type StepResult } from './step.ts'
import type { AgentStrategy, RunTotals } from './strategy.ts'
import type { SubagentSink } from './subagent-sink.ts'
import { succeededTools } from './succeeded-tools.ts'
import { lastAssistant, openCallsOf, repairHistory } from './transcript.ts'
import { throwIfAborted, untilAborted } from './until-aborted.ts'

export type Batches<R> = AsyncGenerator<readonly AgentStreamEvent[], R>

/** One inference of a run, and how it differs from the agent's own. */
export interface AskOptions {
  readonly llm?: LLMInstance
  readonly runsTools?: boolean
}

/** A run of a built-in strategy: its state, its record, and the moves that strategies are made of. */
export class Run {
  state: AgentState
  /** Number of the current step. */
  step: number
  /** Steps begun and tool rounds run by this call: what limits count. */
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
  /** Of sub-agents in steps that are over, and of those that run. */
  #spent: TokenUsage = zeroUsage
  #running: SubagentSink | undefined

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

  /** Calls at the end of a resumed state: its step is not over. */
  get hasOpenCalls(): boolean {
    return openCallsOf(this.state.messages).length > 0
  }

  /** True when a resumed state ends with an answer: there is nothing left to do. */
  get isAnswered(): boolean {
    return this.state.messages.at(-1)?.type === 'assistant' && !this.hasOpenCalls
  }

  /** The limit of the tool strategy counts rounds of the run (UAP §2.4: none by default). */
  get mayRunTools(): boolean {
    return this.rounds < (this.context.agent.toolStrategy?.maxIterations ?? Infinity)
  }

  /** Why the run ends after an inference, if the model or a limit says so. */
  async endAfter({ turn, openCalls }: StepResult): Promise<AgentStopReason | undefined> {
    if (this.state.suspension) return 'interrupted'
    if (openCalls.length > 0) {
      await this.#tellLimit()
      return 'max_iterations'
    }
    return turn && !turn.response.hasToolCalls ? 'complete' : undefined
  }

  /** A28: with a limit of 0 the calls are the caller's own business. */
  async #tellLimit(): Promise<void> {
    const { toolStrategy } = this.context.agent
    if (this.mayRunTools || this.rounds === 0) return
    try {
      await untilAborted(toolStrategy?.onMaxIterations?.(this.rounds), this.context.signal)
    } catch (error) {
      throw codeError(error, 'onMaxIterations of the tool strategy')
    }
  }

  /** The history becomes one that vendors accept; a new input is added to it. */
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

  /** A prompt of the strategy's own. It stays in the history, marked (A6b). */
  prompt(text: string, phase: string): void {
    const uap = { synthetic: true, phase, step: this.step }
    this.add([new UserMessage(text, { metadata: { uap }, ids: this.#ids, clock: this.#clock })])
  }

  /** A resumed step that has open calls goes on under its own number. */
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
    yield* this.tell('step_start', phase ? { phase } : {})
  }

  /** One inference with its tools; or the open calls of a resumed state. */
  async *ask({ llm = this.context.llm, runsTools = true }: AskOptions = {}): Batches<StepResult> {
    const { context } = this
    const { signal, commit, tools, agent } = context
    const asked = runStep({
      state: this.state,
      llm,
      tools,
      runsTools,
      inputs: this.#inputs,
      step: this.step,
      agentId: this.#agentId,
      streaming: this.streaming,
      answers: this.#answers,
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
      ...(agent.toolStrategy && { toolStrategy: agent.toolStrategy }),
      ...(this.#succeeded && { succeeded: this.#succeeded }),
      ...(signal && { signal }),
      ...(commit && { commit }),
    })
    const result = yield* asked
    this.#note(result)
    return result
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

  /** Ends a step: hooks, event, checkpoint. Gives why the run ends after it, if it does. */
  async *endStep(end?: AgentStopReason): Batches<AgentStopReason | undefined> {
    const adopted = await this.hook('onStepEnd', (hooks) => {
      const turn = this.record.stepTurn(this.#lastAnswer())
      return hooks.onStepEnd?.(this.step, { turn, state: this.state })
    })
    if (adopted) this.#adopt(adopted)
    const stopReason = await this.#isOver(end)
    const usage = this.record.stepUsage
    try {
      yield* this.tell('step_end', { usage, ...(stopReason && { stopReason }) })
    } finally {
      // Also for a reader that leaves with this event: the step is done.
      await untilAborted(this.context.checkpoint?.(this.state), this.context.signal)
    }
    return stopReason
  }

  /** Steering keeps a run alive that was about to end by itself. */
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
    return (await untilAborted(shouldStop(this.#totals()), signal)) === true
  }

  #adopt(state: AgentState): void {
    const sources = { ids: this.#ids, clock: this.#clock }
    const repaired = repairHistory(state.messages, { keepsTail: true, sources })
    this.state = repaired === state.messages ? state : state.withContext(repaired)
  }

  /** Of this call so far; the turn is made when it is looked at. */
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

  result(stopReason: AgentStopReason): ExecutionResult {
    const turn = this.record.turn(this.#lastAnswer())
    const interrupts =
      stopReason === 'interrupted' ? interruptsOf(this.state.suspension?.deferred ?? []) : []
    return Object.freeze({
      turn,
      state: this.state,
      stopReason,
      ...(interrupts.length > 0 && { interrupts }),
    })
  }

  /** Answers calls that are not to be run, so that the history stays whole. */
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

  /** Keeps what a failed inference produced, when the run goes on with it. */
  keepPartial({ turn }: UPPError): void {
    if (!turn) return
    this.state = this.state.withMessages(turn.messages)
    this.record.addInference(turn, turn.messages)
    this.#inputs = 0
    this.closeCalls('The answer was not complete.', true)
  }

  /** The error of a failed run tells what was produced before it. */
  fail(error: unknown): UPPError {
    const failure = codeError(error, 'The run')
    const partial = failure.turn
    if (partial && this.record.turn() !== partial)
      this.record.addInference(partial, partial.messages)
    failure.turn = this.record.turn(this.#lastAnswer())
    return failure
  }

  #lastAnswer(): AssistantMessage | undefined {
    return this.record.hasAnswer ? undefined : lastAssistant(this.state.messages)
  }

  *tell<Type extends UAPEventType>(
    type: Type,
    data: UAPEventData[Type],
  ): Generator<readonly AgentStreamEvent[]> {
    if (!this.streaming) return
    yield [uapEvent({ state: this.state, step: this.step, agentId: this.#agentId }, type, data)]
  }

  /** Runs a hook of the application; what it throws names it. */
  async hook<T>(
    name: keyof AgentStrategy,
    call: (hooks: AgentStrategy) => T | Promise<T>,
  ): Promise<T | undefined> {
    if (!this.#hooks[name]) return undefined
    try {
      return await untilAborted(call(this.#hooks), this.context.signal)
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
