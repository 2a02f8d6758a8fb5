import {
  type BatchResult,
  type CallPorts,
  type LLMInstance,
  type Message,
  type StreamEvent,
  type Tool,
  type ToolBatch,
  type ToolCall,
  type ToolEffect,
  type ToolUseStrategy,
  type Turn,
  executeTools,
  isAssistantMessage,
} from '@skein/ai'
import { wantsContext } from '@skein/ai/engine'
import { type Clock, type IdSource, linkAbort, messageOf, systemClock, uuidV4 } from '@skein/base'
import type { AgentStrategy } from '../contract/agent-types.ts'
import type { StepEffect } from '../contract/checkpoint-store.ts'
import { type AgentStreamEvent, uapEvent } from '../contract/event.ts'
import type { AgentState } from '../state/state.ts'
import { openCallsOf } from '../state/transcript.ts'
import { CallBatch, type CallsInput, type CallsResult } from './calls.ts'
import { type Inference, runInference, toAgentEvent } from './inference.ts'
import {
  type Batches,
  followSubagents,
  LiveEvents,
  nextMacrotask,
  type SubagentSink,
} from './live-events.ts'

/**
 * The input of one step: an inference and the tools it requests. If the state has open calls, the step
 * runs those instead.
 */
export interface StepInput extends CallsInput {
  readonly llm: LLMInstance
  readonly tools: readonly Tool[]
  /** Messages that the model is sent instead of those in the state; the state keeps its messages. */
  readonly messages?: readonly Message[]
  /** The number of this inference in its run, from 1; middleware of the model sees it as `cycle`. */
  readonly cycle?: number
  /** How many times the model is asked again after a structured answer that does not fit. Default 0. */
  readonly repair?: number
  /** The number of new messages at the end of the state. */
  readonly inputs?: number
  /** Default: the step number of the state. */
  readonly step?: number
  readonly agentId?: string
  /** Whether the vendor streams and the step yields events. Default true. */
  readonly streaming?: boolean
  readonly signal?: AbortSignal
  /** Whether to run the requested calls; false leaves them open. Default true. */
  readonly runsTools?: boolean
  readonly mode?: ToolBatch['mode']
  /** The tool strategy to use if the model has no `executeTools` of its own. */
  readonly toolStrategy?: ToolUseStrategy
  /** Names of tools that succeeded earlier, so that tools which depend on them (`dependsOn`) may run. */
  readonly succeeded?: ReadonlySet<string>
  /** Returns extra fields for the context of a tool. */
  readonly context?: (call: ToolCall, state: AgentState) => object
  readonly hooks?: Pick<AgentStrategy, 'onAct' | 'onObserve'>
  /** Awaited before and after each inference and each call. */
  readonly commit?: (effect: StepEffect) => void | Promise<void>
  /** The `state` of the model's middleware, shared by all steps of a run. */
  readonly middlewareState?: Map<string, unknown>
  /** Adds the tokens of an inference to the run's account; called with its turn and the state that contains it. */
  readonly charge?: (turn: Turn, state: AgentState) => AgentState
  /** Called before tools run, with the object that will collect the events and tokens of their sub-agents. */
  readonly onSubagents?: (sink: SubagentSink) => void
  readonly clock?: Clock
  readonly ids?: IdSource
}

/** The result of one step. */
export interface StepResult extends CallsResult {
  /** The turn of the inference; absent when the step only ran open calls. */
  readonly turn?: Turn
}

/**
 * Runs one step: yields events as they happen and returns the result. If the last message of the state has
 * open calls, the step runs those instead of an inference. Leaving the generator early aborts the step.
 */
export function step(input: StepInput): Batches<StepResult> {
  const controller = new AbortController()
  const live = new LiveEvents()
  const run = async (): Promise<StepResult> => {
    const unlink = linkAbort([input.signal], controller)
    try {
      return await runStep(
        { ...input, signal: controller.signal },
        input.streaming === false ? undefined : live,
      )
    } finally {
      unlink()
    }
  }
  return live.read(run, () => controller.abort())
}

/** Runs one step and reports its events to `live`, if the run has a reader. All built-in strategies use `runStep`. */
export async function runStep(input: StepInput, live?: LiveEvents): Promise<StepResult> {
  const { state, runsTools = true, inputs = 0, commit } = input
  const waiting = openCallsOf(state.messages)
  if (waiting.length > 0) return act(input, waiting, live)
  const number = input.step ?? state.step
  if (commit) await commit({ type: 'inference_start', step: number, state })
  let inference: Inference
  try {
    const { messages = state.messages } = input
    inference = await runInference({ ...input, messages, inputs, live })
  } catch (error) {
    if (error instanceof Error) inferenceErrors.add(error)
    throw error
  }
  const { turn, messages, indexes } = inference
  const added = state.withMessages(messages)
  const next = input.charge?.(turn, added) ?? added
  if (commit) await commit({ type: 'inference_end', step: number, turn, state: next })
  if (turn.toolExecutions.length > 0) await reportRounds(input, inference, live)
  const calls = openCallsOf(messages)
  if (!runsTools || calls.length === 0) {
    const openCalls = calls.map(({ toolCallId }) => ({ toolCallId }))
    const nothing = { executions: [], warnings: [], interrupts: [] }
    return { state: next, turn, messages, openCalls, ...nothing }
  }
  try {
    const outcome = await act({ ...input, state: next }, calls, live, indexes)
    return { ...outcome, turn, messages: [...messages, ...outcome.messages] }
  } catch (error) {
    const cancellation = cancelledStep(error)
    if (cancellation)
      cancelledSteps.set(error as Error, {
        ...cancellation,
        turn,
        messages: [...messages, ...cancellation.messages],
      })
    throw error
  }
}

const cancelledSteps = new WeakMap<Error, StepResult>()

/** Returns what a step had done when an abort ended its calls; `error` is what the step threw. */
export function cancelledStep(error: unknown): StepResult | undefined {
  return error instanceof Error ? cancelledSteps.get(error) : undefined
}

/**
 * Reports the calls that a model with only `generate` and `stream` ran itself, one round after the other.
 * They are already over, so `onAct` and `onObserve` cannot influence them.
 */
async function reportRounds(
  { state, hooks, agentId = '', step: number = state.step }: StepInput,
  { messages, turn: { toolExecutions } }: Inference,
  live: LiveEvents | undefined,
): Promise<void> {
  const origin = { step: number, agentId }
  const executions = new Map(toolExecutions.map((one) => [one.toolCallId, one]))
  for (const message of messages.filter(isAssistantMessage)) {
    const toolCalls =
      message.toolCalls?.filter(({ toolCallId }) => executions.has(toolCallId)) ?? []
    if (toolCalls.length === 0) continue
    const observations = toolCalls.flatMap(({ toolCallId }) => executions.get(toolCallId) ?? [])
    await live?.emit([uapEvent(origin, 'action', { toolCalls })])
    await hooks?.onAct?.(number, toolCalls)
    await hooks?.onObserve?.(number, observations)
    await live?.emit([uapEvent(origin, 'observation', { observations })])
  }
}

const inferenceErrors = new WeakSet<Error>()

/** True if the model failed, false if a hook or journal of the application did. */
export function isInferenceError(error: unknown): boolean {
  return error instanceof Error && inferenceErrors.has(error)
}

/** Runs the open calls of the last message, except those that still wait for an answer. */
async function act(
  input: StepInput,
  calls: readonly ToolCall[],
  live: LiveEvents | undefined,
  indexes?: ReadonlyMap<string, number>,
): Promise<StepResult> {
  const { state, hooks, agentId = '', clock = systemClock, ids = uuidV4 } = input
  const origin = { step: input.step ?? state.step, agentId }
  const batch = new CallBatch(input, calls)
  if (live) await live.emit([uapEvent(origin, 'action', { toolCalls: batch.calls })])
  if (hooks?.onAct) await hooks.onAct(origin.step, batch.calls)
  const sink = followSubagents(live, () => origin)
  input.onSubagents?.(sink)
  let result: BatchResult
  let cancelled: BatchResult['settled'] | undefined
  const onCancel: ToolBatch['onCancel'] = (settled) => (cancelled = settled)
  try {
    result = await runCalls(input, batch, { sink, live, origin, indexes, onCancel })
  } catch (error) {
    sink.close(clock.now(), messageOf(error))
    if (cancelled && error instanceof Error)
      cancelledSteps.set(error, batch.end({ settled: cancelled, warnings: [] }, { ids, clock }))
    throw error
  }
  // A sub-agent that its time limit has stopped is about to tell its end, with what it has used.
  if (sink.isOpen) await nextMacrotask()
  sink.close(clock.now())
  const outcome = batch.end(result, { ids, clock })
  if (hooks?.onObserve) await hooks.onObserve(origin.step, outcome.executions)
  if (live) await live.emit([uapEvent(origin, 'observation', { observations: outcome.executions })])
  const stateWithTraces = sink.traces.reduce(
    (next, one) => next.withSubagentTrace(one),
    outcome.state,
  )
  return { ...outcome, state: stateWithTraces }
}

/** Where the events of running calls go, and the step, agent and block indexes that those events name. */
interface CallsFollowed {
  readonly sink: SubagentSink
  readonly live: LiveEvents | undefined
  readonly origin: { readonly step: number; readonly agentId: string }
  readonly indexes: ReadonlyMap<string, number> | undefined
  readonly onCancel: ToolBatch['onCancel']
}

/** Runs calls through the model's instance, so that its tool strategy and middleware apply to each call. */
async function runCalls(
  input: StepInput,
  batch: CallBatch,
  { sink, live, origin, indexes, onCancel }: CallsFollowed,
): Promise<BatchResult> {
  const { state, llm, commit, signal, mode, succeeded, middlewareState, tools } = input
  const { clock = systemClock, toolStrategy: strategy } = input
  const { step } = origin
  // A tool may yield a value before the start of its call is reported; such values are kept here until then.
  const early = new Map(
    live && batch.calls.map(({ toolCallId }) => [toolCallId, [] as AgentStreamEvent[]]),
  )
  const progress =
    live &&
    (({ toolCallId, toolName }: ToolCall, output: unknown): void => {
      const event = uapEvent(origin, 'tool_progress', { toolCallId, toolName, output })
      const waiting = early.get(toolCallId)
      if (waiting) waiting.push(event)
      else void live.push(event)
    })
  const withEarly = (event: StreamEvent): readonly AgentStreamEvent[] => {
    if (event.type !== 'tool_execution_start') return [toAgentEvent(event)]
    const { toolCallId } = event.delta
    const waiting = early.get(toolCallId) ?? []
    early.delete(toolCallId)
    return [toAgentEvent(event), ...waiting]
  }
  const journal = commit && {
    commit: (effect: ToolEffect) => {
      const traces = effect.type === 'call_end' ? sink.tracesOf(effect.call.toolCallId) : []
      return commit(traces.length > 0 ? { ...effect, step, traces } : { ...effect, step })
    },
  }
  const task = {
    calls: batch.calls,
    tools,
    settled: batch.settled,
    indexes,
    mode,
    succeeded,
    onCancel,
    open(call: ToolCall): CallPorts {
      const { isApproved, parsed, context } = batch.portsOf(call)
      const tool = tools.find(({ name }) => name === call.toolName)
      // Making the context takes longer than many calls, so it is made only for a tool that uses it.
      if (!tool || (!tool.approval && !wantsContext(tool)))
        return { isApproved, parsed, journal, progress }
      const own = { ...input.context?.(call, state), ...context, onSubagentEvent: sink.push }
      return { isApproved, parsed, context: own, journal, progress }
    },
  }
  const streaming = live !== undefined
  const events =
    typeof llm.executeTools === 'function'
      ? llm.executeTools({ ...task, signal, streaming, state: middlewareState })
      : executeTools({ ...task, signal: signal ?? new AbortController().signal, clock, strategy })
  const scope = { isOver: false }
  try {
    for (;;) {
      const next = await insideTool(scope, () => events.next())
      if (next.done) return next.value
      if (live) await live.emit(next.value.flatMap(withEarly))
    }
  } finally {
    scope.isOver = true
  }
}

/** The part of `AsyncLocalStorage` that is used here. */
interface ScopeStorage {
  run<T>(scope: ToolScope, work: () => T): T
  getStore(): ToolScope | undefined
}

interface ProcessLike {
  getBuiltinModule?(name: 'node:async_hooks'): { AsyncLocalStorage: new () => ScopeStorage }
}

// Node, Bun, Deno and workers have `AsyncLocalStorage`. Elsewhere, a run inside a tool is recognised only if
// it is given the tool's context.
const { process } = globalThis as { process?: ProcessLike }
const asyncHooks = process?.getBuiltinModule?.('node:async_hooks')
const storage = asyncHooks && new asyncHooks.AsyncLocalStorage()

/**
 * The calls of one message while they run. `isOver` is set when they end: work that a tool leaves running
 * after that does not count as inside a tool.
 */
export interface ToolScope {
  isOver: boolean
}

/** Runs a function whose asynchronous work `isInsideTool` recognises. */
export function insideTool<T>(scope: ToolScope, work: () => T): T {
  return storage ? storage.run(scope, work) : work()
}

/** True in code that a running tool of an agent has started, as far as the platform can tell. */
export function isInsideTool(): boolean {
  return storage?.getStore()?.isOver === false
}
