import { linkAbort, systemClock, uuidV4 } from '@skein/base'
import {
  isDeferred,
  type Message,
  type Tool,
  type ToolContext,
  type UPPError,
  withToolContext,
} from '@skein/ai'
import { deriveTool, wantsContext } from '@skein/ai/engine'
import {
  checkpointer,
  type Checkpointer,
  deleteSession,
  flushCheckpoints,
} from '../checkpoint/checkpointer.ts'
import {
  codeError,
  isCancelled,
  throwIfAborted,
  awaitUnlessAborted,
} from '../contract/agent-error.ts'
import type {
  AgentInput,
  AgentStrategy,
  ExecutionContext,
  GenerateResult,
  RunOptions,
} from '../contract/agent-types.ts'
import type { CheckpointConflict } from '../checkpoint/checkpoint-conflict.ts'
import type { AgentStreamEvent, UAPEventData } from '../contract/event.ts'
import type { Answers, RunTotals } from '../state/state-types.ts'
import type { AgentState } from '../state/state.ts'
import { isInsideTool } from '../step/step.ts'
import { withAnswers } from '../step/calls.ts'
import {
  followSubagents,
  type LiveEvents,
  nextMacrotask,
  type SubagentSink,
} from '../step/live-events.ts'
import { agentContext, type ChildLink, sessionOf, withChild } from '../step/run-tree.ts'
import { builtInRun } from '../strategies/built-in.ts'
import { savingHooks } from '../strategies/hooks.ts'
import { loop } from '../strategies/loop.ts'
import { type AgentCore, unansweredInterrupts } from './agent-core.ts'
import { checkResult, checkState, type RunOwner, withOwner } from './run-owner.ts'
import { middlewareMetadata, MiddlewareChain, type RunOutcome } from './middleware-run.ts'

/** One call of an agent. */
export interface AgentTask {
  readonly core: AgentCore
  /** Absent when a run is resumed. */
  readonly input?: AgentInput
  readonly state: AgentState
  readonly options: InternalRunOptions
  /** Where the events go, if the run has a reader. */
  readonly live?: LiveEvents
  readonly resume?: { readonly answers: Answers }
  /** Aborts only this call. */
  readonly controller: AbortController
  readonly takeSteering?: () => readonly Message[]
  /** Called with the state after each step. */
  readonly onState?: (state: AgentState) => void
  /** Makes the result of the call from that of the run and its input, as middleware has left it. */
  readonly finish?: (result: GenerateResult, input: Message) => GenerateResult
}

/** The options of a call, including internal ones that only `subagent()` and `query` use. */
export interface InternalRunOptions extends RunOptions {
  readonly sessionId?: string
  readonly shouldStop?: (totals: RunTotals) => boolean | Promise<boolean>
  /** True when the caller passes interrupts on to its own caller, as `subagent()` does. */
  readonly passesInterrupts?: boolean
  /** Set for the run of a sub-agent: the call for which it runs. */
  readonly child?: ChildLink
}

const defaultExecution = loop()
const noHooks: AgentStrategy = Object.freeze({})

/** Runs an agent: middleware around the hooks, hooks around the strategy (UAP §3.3). */
export async function runAgent(task: AgentTask): Promise<GenerateResult> {
  const { core, controller, options } = task
  const { signal } = controller
  const unlink = linkAbort([options.signal, core.options.signal], controller)
  const isInTool = options.parentContext !== undefined || isInsideTool()
  try {
    const state = checkState(task.state)
    const input = task.resume ? core.resumedInput(state) : core.toInput(task.input)
    const metadata = middlewareMetadata(options.metadata)
    const middleware = new MiddlewareChain({ agent: core.agent, input, state, metadata }, signal)
    const attempt = new Attempt(task, state)
    let outcome: RunOutcome
    try {
      await middleware.before(core.options.middleware ?? [])
      throwIfAborted(signal)
      const { input: asked, state: given } = middleware.context
      const result = await attempt.run(asked, checkState(given))
      // If a tool runs an agent directly, without `subagent()`, interrupts inside it would be lost.
      const isLost = isInTool && !options.passesInterrupts
      if (result.interrupts && isLost) throw unansweredInterrupts(result.interrupts)
      await attempt.complete(result)
      outcome = { result }
    } catch (error) {
      outcome = await attempt.recover(codeError(error, 'The strategy'))
    }
    const last = await middleware.after(outcome, (result) => attempt.complete(result))
    if ('error' in last) throw last.error
    const { input: asked, state: given } = middleware.context
    const result = checkResult(last.result, 'A hook', attempt.ownerOf(given))
    return task.finish?.(result, asked) ?? result
  } finally {
    unlink()
  }
}

/** Runs the strategy, with the application's hooks around it. */
class Attempt {
  readonly #task: AgentTask
  readonly #hooks: AgentStrategy
  #owner: RunOwner | undefined
  /** Follows the sub-agents of a strategy that the application wrote; a built-in strategy follows its own. */
  readonly #sink: SubagentSink
  /** How many traces of `#sink` the state that was saved last contains; -1 if none was saved. */
  #savedTraces = -1
  #state: AgentState
  #isComplete = false

  constructor(task: AgentTask, state: AgentState) {
    this.#task = task
    this.#hooks = task.core.options.strategy ?? noHooks
    this.#state = state
    const agentId = task.core.agent.id
    this.#sink = followSubagents(task.live, () => ({ step: this.#state.step, agentId }))
    task.options.child?.onSubagents?.(this.#sink)
  }

  async run(input: Message, given: AgentState): Promise<GenerateResult> {
    const { core } = this.#task
    const { checkpoints: store, execution = defaultExecution } = core.options
    const { durability, onCheckpointError: onError } = core.options
    const owner = this.ownerOf(given)
    const { sessionId, agentId } = owner
    const ownState = withOwner(given, owner)
    const saver =
      store && sessionId !== undefined
        ? checkpointer({
            store,
            sessionId,
            agentId,
            durability,
            onError,
            onConflict: this.#conflict,
          })
        : undefined
    const state = await this.#withAnswers(ownState, saver, sessionId)
    this.#note(state)
    const context = this.#context({ input, state, sessionId, saver })
    const builtIn = builtInRun(execution)
    try {
      const result = await (builtIn
        ? builtIn(context, this.#task.live)
        : this.#executeForeign(context, saver))
      return checkResult(result, `The strategy "${execution.name}"`, owner)
    } finally {
      if (saver) core.addPending(saver.end())
    }
  }

  /**
   * Returns the ids of session and agent, which every result gets (UAP §3.4): those of the state with which the
   * strategy began, or of `given` if it never began.
   */
  ownerOf(given: AgentState): RunOwner {
    const { core, options } = this.#task
    return (this.#owner ??= {
      sessionId: options.sessionId ?? core.sessionOf(given),
      agentId: core.options.checkpoints && core.agent.id,
    })
  }

  /**
   * Saves the answers of a resumed run before its calls run, if the store has a journal: a person whose answer
   * was passed to `resume` must not be asked again after a crash.
   */
  async #withAnswers(
    state: AgentState,
    saver: Checkpointer | undefined,
    sessionId: string | undefined,
  ): Promise<AgentState> {
    const { core, resume } = this.#task
    const { checkpoints: store } = core.options
    if (!resume || !store || !saver?.commit) return state
    const answeredState = withAnswers(state, resume.answers)
    if (answeredState === state) return state
    const { run } = answeredState
    const next = run ? answeredState.withRun({ ...run, revision: run.revision + 1 }) : answeredState
    await saver.save(next)
    await flushCheckpoints(store, sessionId)
    return next
  }

  /**
   * Executes a strategy that the application wrote. It calls the model, which runs the tools without the agent,
   * so each tool is wrapped to be given the agent's context. The traces of sub-agents are added to each state that
   * the strategy saves and to its last one, which is saved too if no saved state has all of them.
   */
  async #executeForeign(
    context: ExecutionContext,
    saver: Checkpointer | undefined,
  ): Promise<GenerateResult> {
    const { clock = systemClock, signal } = context
    const sink = this.#sink
    const tools = contextualTools(context, this.#task.live !== undefined, sink)
    const llm = context.llm.with({ tools, signal })
    const result = await this.#execute({ ...context, llm, tools }).finally(() =>
      sink.close(clock.now()),
    )
    const state = this.#withTraces(result.state)
    if (this.#savedTraces < sink.traces.length) await saver?.save(state)
    return state === result.state ? result : { ...result, state }
  }

  /** Adds the traces of sub-agents, except those that the strategy has stored in the state itself. */
  #withTraces(state: AgentState): AgentState {
    return this.#sink.traces
      .filter((one) => !state.subagentTraces.some((own) => own.subagentId === one.subagentId))
      .reduce((next, trace) => next.withSubagentTrace(trace), state)
  }

  /** Runs the strategy. It may ignore the signal, so this method stops waiting when the signal aborts. */
  async #execute(context: ExecutionContext): Promise<GenerateResult> {
    const { signal } = context
    const execution = this.#task.core.options.execution! // the default is a built-in strategy
    if (!this.#task.live) return untilCancelled(execution.execute(context), signal)
    const stream = execution.stream(context)
    const events = stream[Symbol.asyncIterator]()
    try {
      for (;;) {
        const next = await untilCancelled(events.next(), signal)
        if (next.done) return await untilCancelled(stream.result, signal)
        if (endsRun(next.value)) this.#task.live.isFinal = true
        await this.#task.live.emit([next.value])
      }
    } catch (error) {
      if (signal?.aborted) stream.abort(signal.reason)
      throw error
    }
  }

  #context(parts: {
    readonly input: Message
    readonly state: AgentState
    readonly sessionId: string | undefined
    readonly saver: Checkpointer | undefined
  }): ExecutionContext {
    const { input, state, sessionId, saver } = parts
    const { core, controller, options, resume, takeSteering } = this.#task
    const { agent, clock } = core
    const { checkpoints: store, durability, onCheckpointError: onError } = core.options
    const { parentContext, shouldStop } = options
    const commit = bothCommits(options.commit, saver?.commit)
    const save = (given: AgentState): void | Promise<void> => {
      const next = this.#withTraces(given)
      this.#savedTraces = this.#sink.traces.length
      this.#note(next)
      return saver?.save(next)
    }
    // With a journal, a crash must not leave a session behind, so the run waits.
    const settle = (work: Promise<void>): void | Promise<void> => {
      if (commit || durability === 'sync') return work
      core.addPending(work)
    }
    return {
      agent,
      llm: core.llm,
      input,
      state,
      tools: agent.tools,
      strategy: saver ? savingHooks(this.#hooks, save) : this.#hooks,
      signal: controller.signal,
      agentId: agent.id,
      stateId: state.id,
      sessionId,
      parentContext,
      resume,
      checkpoint: save,
      takeSteering,
      takeConflicts: () => this.#conflicts.splice(0),
      commit,
      shouldStop,
      endSession: (childStore, childSession) => {
        const after = saver && store && flushCheckpoints(store, sessionId)
        return settle(deleteSession(childStore, childSession, { after, onError }))
      },
      settle,
      clock,
      ids: core.options.ids,
      ...withChild(options.child),
    }
  }

  readonly #conflicts: UAPEventData['checkpoint_conflict'][] = []
  readonly #conflict = ({ sessionId, expected, found }: CheckpointConflict): void => {
    this.#conflicts.push({ sessionId, expected, found })
  }

  #note(state: AgentState): void {
    this.#state = state
    this.#task.onState?.(state)
  }

  /** Calls `onComplete` once, with the final result of the run. A run that waits is not complete. */
  async complete(result: GenerateResult): Promise<void> {
    if (this.#isComplete || result.stopReason === 'interrupted') return
    this.#isComplete = true
    await this.#hook('onComplete', () => this.#hooks.onComplete?.(result))
  }

  /** Calls the application's `onError`, which may return a result; middleware is called after it. */
  async recover(error: Error): Promise<RunOutcome> {
    const isOver = isCancelled(error)
    try {
      const result = await this.#hook('onError', () => this.#hooks.onError?.(error, this.#state))
      if (!result || isOver) return { error }
      await this.complete(result)
      return { result }
    } catch (second) {
      return { error: isOver ? error : (second as Error) } // `#hook` throws only errors
    }
  }

  async #hook<T>(name: string, call: () => T | Promise<T>): Promise<T> {
    try {
      return await call()
    } catch (error) {
      throw codeError(error, `${name} of the agent's strategy`)
    }
  }
}

/**
 * Waits for a strategy, but rejects as soon as `signal` aborts. A built-in strategy that the application has
 * wrapped rejects then too, with an error that has the turn so far; it gets one macrotask to do so.
 */
async function untilCancelled<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  try {
    return await awaitUnlessAborted(work, signal)
  } catch (error) {
    if (!signal?.aborted || (isCancelled(error) && (error as UPPError).turn)) throw error
    const own = work.then(undefined, (failure: unknown) => failure)
    const failure = await Promise.race([own, nextMacrotask()])
    throw isCancelled(failure) && (failure as UPPError).turn ? failure : error
  }
}

function endsRun({ uap }: AgentStreamEvent): boolean {
  return uap?.type === 'step_end' && uap.data?.stopReason !== undefined
}

function bothCommits(
  first: RunOptions['commit'],
  second: RunOptions['commit'],
): RunOptions['commit'] {
  if (!first || !second) return first ?? second
  return async (effect) => {
    await first(effect)
    await second(effect)
  }
}

/**
 * Wraps tools so that they get the agent's context (UAP §8.4), for strategies that let `llm` run them.
 * Returns the same list if no tool needs a context.
 */
function contextualTools(
  context: ExecutionContext,
  streaming: boolean,
  sink: SubagentSink,
): readonly Tool[] {
  const { tools, state, sessionId, resume, ids = uuidV4 } = context
  if (!tools.some(wantsContext)) return tools
  // Several runs may begin with one state, and must share neither keys nor sessions.
  const root = sessionId ?? (resume ? state.id : ids())
  const facts = { step: state.step, streaming, root, shouldStop: async () => false }
  return tools.map((tool) => {
    if (!wantsContext(tool)) return tool
    const run = async (params: never, call: ToolContext): Promise<unknown> => {
      const agentFacts = agentContext(context, call, facts)
      const whole = { ...agentFacts, onSubagentEvent: sink.push, ...call }
      const result: unknown = await tool.run(params, whole as never) // `Tool` does not declare its context type
      const session = sessionOf(tool, root, call.toolCallId)
      if (session && !isDeferred(result))
        await context.endSession?.(session.store, session.sessionId)
      return result
    }
    return withToolContext(deriveTool(tool, { run }))
  })
}
