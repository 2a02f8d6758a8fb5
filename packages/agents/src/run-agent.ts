import type { LLMInstance, Message } from '@skein/ai'
import type { AgentCore } from './agent-core.ts'
import { codeError, isCancelled } from './agent-error.ts'
import { batchesOf } from './agent-stream.ts'
import type { AgentInput, GenerateResult, RunOptions } from './agent.ts'
import { checkInterrupts, checkResult, checkState, toInput, withSession } from './check-run.ts'
import { savingHooks } from './checkpoint-hooks.ts'
import { checkpointer, type Checkpointer } from './checkpoint/checkpointer.ts'
import type { AgentStreamEvent } from './event.ts'
import type { ExecutionContext, StepEffect } from './execution.ts'
import type { Answers } from './interrupt.ts'
import { linkAbort } from './link-abort.ts'
import { LiveEvents, mergeLive } from './live-events.ts'
import { middlewareMetadata } from './middleware-metadata.ts'
import { MiddlewareRun, type Outcome } from './middleware-run.ts'
import type { AgentState } from './state.ts'
import { uapEvent } from './step.ts'
import { isBuiltIn } from './strategies/built-in.ts'
import { loop } from './strategies/loop.ts'
import type { AgentStrategy, RunTotals } from './strategy.ts'
import { SubagentSink } from './subagent-sink.ts'
import { contextualTools } from './contextual-tools.ts'
import { throwIfAborted, untilAborted } from './until-aborted.ts'

type Batches<R> = AsyncGenerator<readonly AgentStreamEvent[], R>

/** One call of an agent. */
export interface AgentTask {
  readonly core: AgentCore
  /** Absent when a run is resumed. */
  readonly input?: AgentInput
  readonly state: AgentState
  readonly options: InternalRunOptions
  readonly streaming: boolean
  readonly resume?: { readonly answers: Answers }
  /** Of this call alone; absent when nothing could abort it. */
  readonly controller: AbortController
  readonly takeSteering?: () => readonly Message[]
  /** Told the state after each step. */
  readonly onState?: (state: AgentState) => void
}

/** With what the sub-agent helper and `query` add. */
export interface InternalRunOptions extends RunOptions {
  readonly sessionId?: string
  readonly shouldStop?: (totals: RunTotals) => boolean | Promise<boolean>
  /** Somebody above passes interrupts on. */
  readonly takesInterrupts?: boolean
}

const defaultExecution = loop()
const noHooks: AgentStrategy = Object.freeze({})

/** A whole run: middleware around hooks around the strategy (UAP §3.3). */
export async function* runAgent(task: AgentTask): Batches<GenerateResult> {
  const { core, controller, options } = task
  const unlink = linkAbort([options.signal, core.options.signal], controller)
  try {
    return yield* runLinked(task)
  } finally {
    unlink()
  }
}

async function* runLinked(task: AgentTask): Batches<GenerateResult> {
  const { core, options, controller } = task
  const { signal } = controller
  const { agent } = core
  const state = checkState(task.state)
  const input = toInput(task, state)
  const metadata = middlewareMetadata(options.metadata)
  const middleware = new MiddlewareRun({ agent, input, state, metadata }, signal)
  const attempt = new Attempt(task, state)
  let outcome: Outcome
  try {
    await middleware.before(core.options.middleware ?? [])
    throwIfAborted(signal)
    const { input: asked, state: given } = middleware.context
    const result = yield* attempt.run(asked, checkState(given))
    checkInterrupts(result, options)
    await attempt.complete(result)
    outcome = { result }
  } catch (error) {
    outcome = await attempt.recover(codeError(error, 'The strategy'))
  }
  const last = await middleware.after(outcome, (result) => attempt.complete(result))
  if ('error' in last) throw last.error
  return last.result
}

/** The strategy's part of a run, with the application's hooks around it. */
class Attempt {
  readonly #task: AgentTask
  readonly #hooks: AgentStrategy
  #state: AgentState
  #isComplete = false

  constructor(task: AgentTask, state: AgentState) {
    this.#task = task
    this.#hooks = task.core.options.strategy ?? noHooks
    this.#state = state
  }

  async *run(input: Message, given: AgentState): Batches<GenerateResult> {
    const { core, options } = this.#task
    const {
      checkpoints,
      execution = defaultExecution,
      durability,
      onCheckpointError,
    } = core.options
    const sessionId = options.sessionId ?? core.sessionOf(given.metadata)
    const state = withSession(given, sessionId, checkpoints && core.agent.id)
    this.#note(state)
    const saver =
      checkpoints && sessionId !== undefined
        ? checkpointer({
            store: checkpoints,
            sessionId,
            agentId: core.agent.id,
            ...(durability && { durability }),
            ...(onCheckpointError && { onError: onCheckpointError }),
          })
        : undefined
    const context = this.#context({ input, state, sessionId, saver })
    const result = isBuiltIn(execution)
      ? yield* this.#execute(context)
      : yield* this.#executeForeign(context, saver)
    return checkResult(result, execution.name, sessionId, checkpoints && core.agent.id)
  }

  /** What is built in ends by itself when it is cancelled; others are not waited for. */
  async *#execute(context: ExecutionContext, race?: AbortSignal): Batches<GenerateResult> {
    const { execution = defaultExecution } = this.#task.core.options
    if (!this.#task.streaming) return untilAborted(execution.execute(context), race)
    const stream = execution.stream(context)
    const batches = batchesOf(stream)
    try {
      for (;;) {
        const step = await untilAborted(batches.next(), race)
        if (step.done) return step.value
        yield step.value
      }
    } catch (error) {
      if (race?.aborted) stream.abort(race.reason)
      throw error
    }
  }

  /**
   * A strategy of the application's own: its model runs tools by itself, so the tools bring their
   * context along; its sub-agents are followed from here; a step it did not save is saved.
   */
  async *#executeForeign(
    context: ExecutionContext,
    saver: Checkpointer | undefined,
  ): Batches<GenerateResult> {
    const { streaming } = this.#task
    const live = new LiveEvents()
    const agentId = context.agent.id
    const sink = new SubagentSink((event) => {
      const { type, ...data } = event
      if (streaming) live.push(uapEvent({ state: this.#state, agentId }, type, data))
    })
    const foreign = withContextualTools(context, streaming, sink)
    const batches = this.#execute(foreign, context.signal)
    const result = streaming ? yield* mergeLive(batches, live) : yield* batches
    const state = withTraces(result.state, sink)
    if (saver && !this.#hasSaved) await saver.save(state)
    return state === result.state ? result : { ...result, state }
  }

  #hasSaved = false

  #context({ input, state, sessionId, saver }: ContextParts): ExecutionContext {
    const { core, controller, options, resume, takeSteering } = this.#task
    const { agent } = core
    const { signal } = controller
    const save = (next: AgentState): void | Promise<void> => {
      this.#hasSaved = true
      this.#note(next)
      return saver?.save(next)
    }
    const commit = bothCommits(options.commit, saver?.commit)
    return {
      agent,
      llm: core.llm,
      input,
      state,
      tools: agent.tools,
      strategy: saver ? savingHooks(this.#hooks, save) : this.#hooks,
      signal,
      agentId: agent.id,
      stateId: state.id,
      ...(sessionId !== undefined && { sessionId }),
      ...(options.parentContext && { parentContext: options.parentContext }),
      ...(resume && { resume }),
      checkpoint: save,
      ...(takeSteering && { takeSteering }),
      ...(commit && { commit }),
      ...(options.shouldStop && { shouldStop: options.shouldStop }),
      ...(core.clock && { clock: core.clock }),
      ...(core.options.ids && { ids: core.options.ids }),
    }
  }

  #note(state: AgentState): void {
    this.#state = state
    this.#task.onState?.(state)
  }

  /** Once, for the result that the run ends with or recovers with. */
  async complete(result: GenerateResult): Promise<void> {
    if (this.#isComplete) return
    this.#isComplete = true
    await this.#hook('onComplete', () => this.#hooks.onComplete?.(result))
  }

  /** A33: the application's `onError` has the first say; middleware comes after it. */
  async recover(error: Error): Promise<Outcome> {
    const isOver = isCancelled(error)
    try {
      const result = await this.#hook('onError', () => this.#hooks.onError?.(error, this.#state))
      if (!result || isOver) return { error }
      await this.complete(result)
      return { result }
    } catch (second) {
      return { error: isOver ? error : (second as Error) } // #hook throws nothing else
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

interface ContextParts {
  readonly input: Message
  readonly state: AgentState
  readonly sessionId: string | undefined
  readonly saver: Checkpointer | undefined
}

function withContextualTools(
  context: ExecutionContext,
  streaming: boolean,
  sink: SubagentSink,
): ExecutionContext {
  const tools = contextualTools(context, streaming, sink)
  const { signal } = context
  const llm: LLMInstance = context.llm.with({ tools, ...(signal && { signal }) })
  return { ...context, llm, tools }
}

function withTraces(state: AgentState, { traces }: SubagentSink): AgentState {
  const known = new Set(state.subagentTraces.map(({ subagentId }) => subagentId))
  return traces
    .filter(({ subagentId }) => !known.has(subagentId))
    .reduce((next, trace) => next.withSubagentTrace(trace), state)
}

function bothCommits(
  first: RunOptions['commit'],
  second: RunOptions['commit'],
): RunOptions['commit'] {
  if (!first || !second) return first ?? second
  return async (effect: StepEffect) => {
    await first(effect)
    await second(effect)
  }
}
