import {
  type Clock,
  type IdSource,
  isPromise,
  type MaybePromise,
  systemClock,
  uuidV4,
} from '@skein/base'
import {
  type AssistantMessage,
  isAssistantMessage,
  type LLMInstance,
  type Message,
  type Tool,
  type ToolCall,
  ToolResultMessage,
  type Turn,
  type UPPError,
  UserMessage,
} from '@skein/ai'
import { addUsage, isMalformed, succeededTools, zeroUsage } from '@skein/ai/engine'
import {
  awaitUnlessAborted,
  codeError,
  throwIfAborted,
  unknownCost,
} from '../contract/agent-error.ts'
import type {
  AgentStrategy,
  ExecutionContext,
  ExecutionResult,
  InferenceChanges,
  InferenceRequest,
} from '../contract/agent-types.ts'
import {
  type AgentStopReason,
  uapEvent,
  type UAPEventData,
  type UAPEventType,
} from '../contract/event.ts'
import { isUnpriced, needsCost } from '../contract/cost-condition.ts'
import { newAccount, type Spending } from '../state/run-account.ts'
import type { Answers, RunAccount, RunTotals } from '../state/state-types.ts'
import { frozenData } from '../state/state-data.ts'
import { advance, type AgentState, extendsHistory } from '../state/state.ts'
import { lastCallsOf, openCallsOf, repairHistory } from '../state/transcript.ts'
import type { LedgerRun, RunLedger } from '../step/ledger.ts'
import { type LiveEvents, nextMacrotask, type SubagentSink } from '../step/live-events.ts'
import {
  agentContext,
  childOf,
  isSubagent,
  ledgerMakerOf,
  type OpenLedger,
  sessionOf,
  type SubagentSession,
} from '../step/run-tree.ts'
import { cancelledStep, runStep, type StepInput, type StepResult } from '../step/step.ts'
import { endOfAnswer, MAX_MALFORMED_RETRIES } from './answer-end.ts'
import { hooksOf } from './hooks.ts'
import { RunRecord } from './run-record.ts'

type Hook<Name extends keyof AgentStrategy> = NonNullable<AgentStrategy[Name]>

/** Settings of one inference that differ from the agent's. */
interface AskOptions {
  readonly llm?: LLMInstance
  readonly runsTools?: boolean
}

/** The model, tools and messages of one inference, after the `onInference` hooks. */
interface InferenceSettings {
  readonly llm: LLMInstance
  readonly tools: readonly Tool[]
  /** Undefined if open calls run instead of an inference. */
  readonly messages: readonly Message[] | undefined
}

/**
 * A run of a built-in strategy: its state, its record, and the operations that strategies consist of
 * (`beginStep`, `ask`, `endStep`). `loop`, `react` and `plan` differ only in how they arrange these.
 */
export class StrategyRun {
  state: AgentState
  /** Number of the current step. */
  step: number
  /** The number of steps that the run has started, before and after each `resume`. */
  steps: number
  readonly context: ExecutionContext
  readonly record: RunRecord = new RunRecord()
  /** Where the events go, if the run has a reader. */
  readonly #live: LiveEvents | undefined
  readonly #hooks: AgentStrategy
  readonly #agentId: string
  /** The sources of ids and times. */
  readonly #sources: { readonly ids: IdSource; readonly clock: Clock }
  readonly #middlewareState = new Map<string, unknown>()
  readonly #succeeded: Set<string> | undefined
  readonly #ledgerRun: LedgerRun = {
    state: () => this.state,
    settled: () => this.#settled,
    stops: (totals) => this.#stopsAt(totals),
  }
  /** Counts what the run and its sub-agents use; set if it has sub-agents or is the run of a sub-agent. */
  #ledger: RunLedger | undefined
  /** Whether an inference of the run itself has a cost that is not known. */
  #hasUnknownCost = false
  readonly #startedAt: number
  /** What the run had used when this call of the agent began, plus what was added since. */
  #account: RunAccount
  /** Steps whose inference was allowed to start; a step that still waits for its budget is not counted. */
  #askedSteps: number
  /** Sessions of sub-agents whose calls had a result, or were closed, when this call of the agent began. */
  readonly #oldSessions: SubagentSession[]
  /** Whether the run has, or had, sub-agents with sessions of their own. */
  readonly #hasSessions: boolean
  /** Whether this call of the agent has begun a step. */
  #hasBegun = false
  #answers: Answers
  #inputs = 0
  #steering: readonly Message[] = []
  #running: SubagentSink | undefined
  /** `#cycle` counts the inferences; `#last` and `#sent`: the messages, the usage and the state of the last one. */
  #cycle = 0
  #last: InferenceRequest['last']
  #sent: { readonly state: AgentState; readonly messages: readonly Message[] } | undefined

  constructor(context: ExecutionContext, live?: LiveEvents) {
    this.context = context
    this.#live = live
    this.state = context.state
    this.step = context.resume ? context.state.step : 0
    this.#hooks = hooksOf(context.strategy)
    this.#agentId = context.agentId ?? context.agent.id
    const { ids = uuidV4, clock = systemClock } = context
    this.#sources = { ids, clock }
    this.#answers = context.resume?.answers ?? {}
    const child = childOf(context)
    const previousRun = context.resume && context.state.run
    // Not the id of the state: several runs may begin with one state, and must share neither keys nor sessions.
    const id = child?.root ?? context.sessionId ?? previousRun?.id ?? ids()
    this.#account = frozenData(previousRun ? { ...previousRun, id } : newAccount(id, child?.origin))
    this.steps = this.#askedSteps = this.#account.steps
    this.#startedAt = clock.now()
    this.#ledger = (child?.openLedger ?? ledgerMakerOf(context.tools))?.(this.#ledgerRun)
    const { calls, answered } = lastCallsOf(this.state.messages)
    const over = context.resume ? calls.filter((call) => answered.has(call.toolCallId)) : calls
    this.#oldSessions = this.#sessionsOf(over, context.state.run?.id ?? id)
    this.#hasSessions = context.tools.some(isSubagent)
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

  /** The number of rounds of tool calls that the run has finished, before and after each `resume`. */
  get rounds(): number {
    return this.#account.rounds ?? 0
  }

  /** The number of new plans that failed steps have led to, before and after each `resume`. */
  get replans(): number {
    return this.#account.replans ?? 0
  }

  countReplan(): void {
    this.#account = { ...this.#account, replans: this.replans + 1 }
  }

  /**
   * Whether another round of tool calls is allowed. The limit of the tool strategy is for the whole run; by
   * default there is no limit (UAP §2.4).
   */
  get mayRunTools(): boolean {
    return this.rounds < (this.context.agent.toolStrategy?.maxIterations ?? Infinity)
  }

  /** Returns why the run ends after an inference, if the model or a limit ends it. */
  endAfter({
    turn,
    openCalls,
  }: StepResult): AgentStopReason | undefined | Promise<AgentStopReason> {
    if (this.state.suspension) return 'interrupted'
    if (openCalls.length > 0) return this.#endAtLimit()
    return turn && !turn.response.toolCalls?.length ? endOfAnswer(turn) : undefined
  }

  async #endAtLimit(): Promise<AgentStopReason> {
    // With a limit of 0 the application runs the calls itself, so `onMaxIterations` is not called.
    if (!this.mayRunTools && this.rounds > 0) {
      const { toolStrategy } = this.context.agent
      await this.#guard('onMaxIterations of the tool strategy', () =>
        toolStrategy?.onMaxIterations?.(this.rounds),
      )
    }
    return 'max_iterations'
  }

  /** Repairs the history so that vendors accept it, and adds the new input. */
  #open(): void {
    const { resume, input } = this.context
    const sources = this.#sources
    const { messages, suspension } = this.state
    const results = suspension?.answered?.results ?? []
    const repaired = repairHistory(messages, {
      known: results,
      keepsTail: resume !== undefined,
      sources,
    })
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
    this.add([new UserMessage(text, { metadata: { uap }, ...this.#sources })])
  }

  /** Starts a step. A resumed step that has open calls keeps its number. */
  async beginStep(phase?: 'plan' | 'execute'): Promise<void> {
    const { signal } = this.context
    throwIfAborted(signal)
    const goesOn = !this.#hasBegun && this.context.resume !== undefined && this.hasOpenCalls
    this.#hasBegun = true
    if (!goesOn) this.step++
    // A step that continues is counted already, unless an older version saved the state without a count.
    if (!goesOn || this.steps === 0) this.steps++
    if (performance.now() - yieldedAt >= 20) await yieldToEventLoop()
    this.record.beginStep()
    if (!goesOn) this.add([...this.#steering, ...(this.context.takeSteering?.() ?? [])])
    this.#steering = []
    this.state = advance(this.state, { step: this.step })
    if (this.#hooks.onStepStart) await this.hook('onStepStart', this.step, this.state)
    if (this.#live) await this.emit('step_start', phase ? { phase } : {})
  }

  /**
   * Runs one inference with its tools, or the open calls of a resumed state. Throws `BudgetUsedUp` if the
   * budget of a caller does not allow the inference.
   */
  async ask(options: AskOptions = {}): Promise<StepResult> {
    const { signal } = this.context
    if (
      this.#ledger?.isShared &&
      !this.hasOpenCalls &&
      !(await this.#ledger.reserve(this.state.messages, signal))
    )
      throw new BudgetUsedUp()
    this.#askedSteps = this.steps
    try {
      const { llm = this.context.llm } = options
      const settings = this.hasOpenCalls
        ? { llm, tools: this.context.tools, messages: undefined }
        : this.#prepare(llm)
      const { runsTools = true } = options
      const own = isPromise(settings) ? await settings : settings
      const input = this.#stepInput(own, { isPlanner: llm !== this.context.llm, runsTools })
      return await this.#ask(input)
    } finally {
      this.#ledger?.release()
    }
  }

  async #ask(input: StepInput): Promise<StepResult> {
    const { messages } = input
    let result = await runStep(input, this.#live)
    for (let retry = 1; retry <= MAX_MALFORMED_RETRIES; retry++) {
      if (!result.turn || !isMalformed(result.turn)) break
      // The answer is paid for, but no part of the history: it has nothing that could be sent again.
      this.record.addInference(result.turn, [])
      result = await runStep({ ...input, cycle: ++this.#cycle }, this.#live)
    }
    if (messages && result.turn) {
      const usage = result.turn.usageByCycle?.at(-1) ?? result.turn.usage
      this.#last = { messages, usage }
    }
    this.#note(result)
    return result
  }

  #stepInput(
    { llm, tools, messages }: InferenceSettings,
    { isPlanner, runsTools }: { readonly isPlanner: boolean; readonly runsTools: boolean },
  ): StepInput {
    const { signal, commit, agent } = this.context
    const input: StepInput = {
      state: this.state,
      llm,
      tools,
      messages,
      cycle: this.#cycle,
      repair: isPlanner ? 0 : agent.repair, // a planner asks again itself
      runsTools,
      inputs: this.#inputs,
      step: this.step,
      agentId: this.#agentId,
      signal,
      commit,
      answers: this.#answers,
      succeeded: this.#succeeded,
      maxToolResultBytes: agent.config?.maxToolResultBytes,
      toolStrategy: agent.toolStrategy,
      context: (call, state) =>
        agentContext({ ...this.context, state }, call, {
          step: this.step,
          streaming: this.#live !== undefined,
          root: this.#account.id,
          messageId: state.messages.findLast(isAssistantMessage)?.id,
          isResumed: !messages,
          ledgerOf: (open) => (this.#ledger ??= this.#openLate(open)),
          shouldStop: async (more) => {
            const { usage, steps } = this.#spent
            const stops = await this.#stopsAt({ usage: addUsage(usage, more), steps })
            return stops || (await this.#ledger?.isUsedUp()) === true
          },
        }),
      charge: (turn, state) => this.#charge(turn, state),
      hooks: {
        onAct: this.#hooks.onAct && this.#stepHooks.onAct,
        onObserve: this.#hooks.onObserve && this.#stepHooks.onObserve,
      },
      middlewareState: this.#middlewareState,
      onSubagents: (sink) => {
        this.#running = sink
        this.#ledger?.beginCalls(sink)
        childOf(this.context)?.onSubagents?.(sink)
      },
      ...this.#sources,
    }
    return input
  }

  /**
   * Calls the `onInference` hooks and returns the model, the tools and the messages of the next inference. The
   * state keeps its whole history. Replaced messages stay in force for the rest of the run, as long as the
   * history only grows.
   */
  #prepare(given: LLMInstance): MaybePromise<InferenceSettings> {
    const { agent, tools } = this.context
    this.#cycle++
    const request: InferenceRequest = {
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
    const hasHook = this.#hooks.onInference || agent.middleware?.some((one) => one.onInference)
    if (!hasHook) return this.#settings(given, request, {})
    return this.#askHooks(request).then((answer) =>
      this.#settings(given, answer.request, answer.changes),
    )
  }

  /** Calls the `onInference` hooks. Each sees what those before it have changed. */
  async #askHooks(first: InferenceRequest): Promise<{
    readonly request: InferenceRequest
    readonly changes: InferenceChanges
  }> {
    let request = first
    let changes: InferenceChanges = {}
    const apply = (more: InferenceChanges | void): void => {
      if (!more) return
      for (const [name, value] of Object.entries(more.metadata ?? {}))
        this.state = this.state.withMetadata(name, value)
      changes = { ...changes, ...more }
      request = { ...request, ...more, state: this.state }
    }
    for (const one of this.context.agent.middleware ?? []) {
      if (!one.onInference) continue
      const where = `onInference of the middleware "${one.name}"`
      apply(await this.#guard(where, () => one.onInference?.(request)))
    }
    apply(await this.hook('onInference', request))
    return { request, changes }
  }

  #settings(
    given: LLMInstance,
    request: InferenceRequest,
    changes: InferenceChanges,
  ): InferenceSettings {
    const { tools } = this.context
    const sources = this.#sources
    const { state } = this
    // The messages sent before have all their results, so only messages added since then are checked.
    const { state: before, messages: sent } = this.#sent ?? {}
    const isGrown =
      before?.messages === sent &&
      request.messages === state.messages &&
      extendsHistory(state, before)
    const checkedCount = isGrown ? sent?.length : 0
    const messages = repairHistory(request.messages, { sources, checked: checkedCount })
    this.#sent = { state, messages }
    const isPlanner = given !== this.context.llm // a planner has its own tools, which no hook replaces
    const { model, params, tools: chosen } = changes
    const settings = Object.entries({ model, params, tools: isPlanner ? undefined : chosen })
    const newSettings = settings.filter(([, value]) => value !== undefined)
    return {
      llm:
        newSettings.length > 0 && typeof given.with === 'function'
          ? given.with(Object.fromEntries(newSettings))
          : given,
      tools: isPlanner ? tools : request.tools,
      messages,
    }
  }

  /** Returns the messages to send: those a hook put in place of the history, plus later ones; else the history. */
  #view(): readonly Message[] {
    const { messages } = this.state
    const { state, messages: sent } = this.#sent ?? {}
    const history = state?.messages
    if (!sent || !history || sent === history) return messages
    const isLonger =
      messages.length >= history.length &&
      messages[0] === history[0] &&
      messages[history.length - 1] === history.at(-1)
    return isLonger ? [...sent, ...messages.slice(history.length)] : messages
  }

  #note(result: StepResult): void {
    const { turn, messages, executions, warnings, openCalls } = result
    this.state = result.state
    this.#answers = {}
    this.#inputs = 0
    if (turn) this.record.addInference(turn, messages)
    else this.record.addMessages(messages)
    this.record.addExecutions(executions, warnings)
    this.record.openCalls = openCalls
    // A round with calls that wait is counted when a resumed run has finished it.
    if (executions.length > 0 && !this.state.suspension)
      this.#account = { ...this.#account, rounds: this.rounds + 1 }
    for (const { toolName, isError } of executions) if (!isError) this.#succeeded?.add(toolName)
    const { usage = zeroUsage, steps = 0 } = this.#running ?? {}
    if (usage !== zeroUsage || steps > 0)
      this.#account = {
        ...this.#account,
        subagentUsage: frozenData(addUsage(this.#account.subagentUsage, usage)),
        subagentSteps: this.#account.subagentSteps + steps,
      }
    this.#running = undefined
    this.#ledger?.endCalls()
  }

  /** Adds the tokens of an inference to the run's account (what it has used); returns the state with that account. */
  #charge({ usage }: Turn, state: AgentState): AgentState {
    const sum = frozenData(addUsage(this.#account.usage, usage))
    this.#account = { ...this.#account, usage: sum }
    this.#hasUnknownCost ||= isUnpriced(usage)
    this.#ledger?.settle(usage, state.messages.length)
    return this.#stamp(state)
  }

  /** Returns the state with the run's account (steps, tokens, time) as it is now. */
  #stamp(state: AgentState): AgentState {
    const { revision } = this.#account
    this.#account = { ...this.#account, steps: this.#askedSteps, revision: revision + 1 }
    const run = Object.freeze({ ...this.#account, durationMs: this.#durationMs })
    return advance(state, { run })
  }

  /** What the run and its ended sub-agents have used. */
  get #settled(): Spending {
    const { usage, subagentUsage, subagentSteps } = this.#account
    const { usage: ended = zeroUsage, steps = 0 } = this.#running ?? {}
    return {
      usage: addUsage(addUsage(usage, subagentUsage), ended),
      steps: this.#askedSteps + subagentSteps + steps,
    }
  }

  /** What the run has used with all its sub-agents. */
  get #spent(): Spending {
    return this.#ledger?.spent ?? this.#settled
  }

  /** Makes the ledger, which counts what sub-agents use, after a hook has added the first sub-agent. */
  #openLate(open: OpenLedger): RunLedger {
    const ledger = open(this.#ledgerRun)
    if (this.#last) ledger.settle(this.#last.usage, this.#last.messages.length)
    if (this.#running) ledger.beginCalls(this.#running)
    return ledger
  }

  get #durationMs(): number {
    return this.#account.durationMs + Math.max(0, this.#sources.clock.now() - this.#startedAt)
  }

  /**
   * Ends a step: calls `onStepEnd`, checks the stop conditions, yields `step_end` and saves the state.
   * Returns why the run ends after this step, or undefined if the run continues. `limit` is given if the run
   * has no step left.
   */
  async endStep(
    end?: AgentStopReason,
    limit?: AgentStopReason,
  ): Promise<AgentStopReason | undefined> {
    this.state = this.#stamp(this.state)
    if (this.#hooks.onStepEnd) {
      const turn = this.record.stepTurn(this.#lastAnswer())
      const newState = await this.hook('onStepEnd', this.step, { turn, state: this.state })
      if (newState) this.#adopt(this.#stamp(newState))
    }
    const stopReason = await this.#isOver(end ?? limit, limit)
    const conflicts = this.context.takeConflicts?.() ?? []
    if (conflicts.length > 0) await this.#reportConflicts(conflicts)
    if (this.#live) {
      const usage = this.record.stepUsage
      if (stopReason) this.#live.isFinal = true
      await this.emit('step_end', stopReason ? { usage, stopReason } : { usage })
    }
    const saving = this.context.checkpoint?.(this.state)
    if (saving) await awaitUnlessAborted(saving, this.context.signal)
    if (this.#hasSessions) await this.#endSessions()
    const later = this.context.takeConflicts?.() ?? []
    if (later.length > 0) await this.#reportConflicts(later)
    return stopReason
  }

  /** Reports that another run has saved the session: as events, and as warnings of the turn. */
  async #reportConflicts(conflicts: readonly UAPEventData['checkpoint_conflict'][]): Promise<void> {
    for (const conflict of conflicts) {
      const { sessionId } = conflict
      const message = `The session ${JSON.stringify(sessionId)} was saved by another process during this run.`
      this.record.addExecutions([], [{ code: 'checkpoint_conflict', message }])
      await this.emit('checkpoint_conflict', conflict)
    }
  }

  /**
   * Returns why the run ends. A steering message keeps a run going that was about to complete, unless the limit
   * of its steps is reached.
   */
  async #isOver(
    end: AgentStopReason | undefined,
    limit: AgentStopReason | undefined,
  ): Promise<AgentStopReason | undefined> {
    if (end === 'interrupted') return end
    const stops = this.#stopsAt()
    if (isPromise(stops) ? await stops : stops) return 'stop_condition'
    const { shouldStop, signal } = this.context
    const isStopped = shouldStop && (await awaitUnlessAborted(shouldStop(this.#totals()), signal))
    if (isStopped === true) return 'stop_condition'
    if (end !== 'complete') return end
    this.#steering = this.context.takeSteering?.() ?? []
    return this.#steering.length > 0 ? limit : end
  }

  #adopt(state: AgentState): void {
    const repaired = repairHistory(state.messages, { keepsTail: true, sources: this.#sources })
    this.state = repaired === state.messages ? state : state.withContext(repaired)
  }

  /** Returns what the run has done so far. Its turn is only made when it is read. */
  #totals(totals: Spending = this.#spent): RunTotals {
    const turn = (): Turn => this.record.turn(this.#lastAnswer())
    return {
      get turn() {
        return turn()
      },
      ...totals,
      durationMs: this.#durationMs,
    }
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
    const message = new ToolResultMessage(results, this.#sources)
    this.state = this.state.withMessages([message])
    this.record.addMessages([message])
    this.record.openCalls = []
  }

  /**
   * Stores what a failed inference produced, for a run that continues after the failure, and takes it from the
   * error, so that `fail` does not store it again.
   */
  keepPartial(error: UPPError): void {
    const { turn } = error
    if (!turn?.messages.length) return
    error.turn = undefined
    this.state = this.#charge(turn, this.state.withMessages(turn.messages))
    this.record.addInference(turn, turn.messages)
    this.#inputs = 0
    this.closeCalls('The answer was not complete.', true)
  }

  /** Returns the error of a failed run; its `turn` is what the run produced before. */
  fail(error: unknown): UPPError {
    const failure = codeError(error, 'The run')
    const partial = failure.turn
    const cancellation = cancelledStep(error)
    if (cancellation) this.#note(cancellation)
    if (partial) this.record.addInference(partial, partial.messages)
    failure.turn = this.record.turn(this.#lastAnswer())
    return failure
  }

  #lastAnswer(): AssistantMessage | undefined {
    return this.record.hasAnswer ? undefined : this.state.messages.findLast(isAssistantMessage)
  }

  /** Reports an event of the current step, if the run has a reader. */
  emit<Type extends UAPEventType>(type: Type, data: UAPEventData[Type]): void | Promise<void> {
    return this.#live?.emit([uapEvent({ step: this.step, agentId: this.#agentId }, type, data)])
  }

  /** Runs a hook of the application, if it is set. An error message names the hook that threw. */
  hook<Name extends keyof AgentStrategy>(
    name: Name,
    ...args: Parameters<Hook<Name>>
  ): Promise<Awaited<ReturnType<Hook<Name>>>> | undefined {
    // `args` are those of this hook.
    const hooks = this.#hooks as Partial<Record<Name, (...args: unknown[]) => never>>
    if (!hooks[name]) return undefined
    return this.#guard(`${name} of the agent's strategy`, () => hooks[name]!(...args))
  }

  /** Calls a function of the application and waits for it, unless the run is cancelled. */
  async #guard<T>(where: string, call: () => T | Promise<T>): Promise<T> {
    try {
      return await awaitUnlessAborted(call(), this.context.signal)
    } catch (error) {
      throw codeError(error, where)
    }
  }

  readonly #stepHooks: Pick<Required<AgentStrategy>, 'onAct' | 'onObserve'> = {
    onAct: (...args) => this.hook('onAct', ...args),
    onObserve: (...args) => this.hook('onObserve', ...args),
  }

  #stopsAt(totals?: Spending): MaybePromise<boolean> {
    // A sum of known and unknown costs looks like a known one, so the condition itself cannot see this.
    const hasUnknown = this.#hasUnknownCost || this.#ledger?.hasUnknownCost === true
    if (hasUnknown && needsCost(this.#hooks.stopCondition)) throw unknownCost('this run')
    if (!this.#hooks.stopCondition) return false
    const answer = this.hook('stopCondition', this.state, this.#totals(totals))
    return Promise.resolve(answer).then((stops) => stops === true)
  }

  /**
   * Deletes the sessions of sub-agents whose calls have a result, after the state with the results was saved.
   * Also deletes those whose calls had a result when the run was resumed, because the process may have died
   * between the save and the deletion, and those whose calls got an error result because a new input came.
   */
  async #endSessions(): Promise<void> {
    const { calls, answered } = lastCallsOf(this.state.messages)
    const [over, open] = [true, false].map((isOver) =>
      this.#sessionsOf(
        calls.filter(({ toolCallId }) => answered.has(toolCallId) === isOver),
        this.#account.id,
      ),
    )
    const waiting = new Set(open!.map(({ sessionId }) => sessionId))
    for (const { store, sessionId } of [...this.#oldSessions.splice(0), ...over!])
      if (!waiting.has(sessionId)) await this.context.endSession?.(store, sessionId)
  }

  #sessionsOf(calls: readonly ToolCall[], root: string): SubagentSession[] {
    const { tools } = this.context
    return calls.flatMap(({ toolCallId, toolName }) => {
      const tool = tools.find(({ name }) => name === toolName)
      return sessionOf(tool, root, toolCallId) ?? []
    })
  }
}

/** Thrown when the budget of a caller does not allow another inference; ends the run with `stop_condition`. */
export class BudgetUsedUp extends Error {}

let yieldedAt = 0

/**
 * Waits for the next macrotask. A step does so if the last such wait was 20 ms ago or more: a model that
 * answers from memory would otherwise keep timers and signals from ever firing.
 */
async function yieldToEventLoop(): Promise<void> {
  await nextMacrotask()
  yieldedAt = performance.now()
}
