import { type Clock, type IdSource, messageOf, systemClock, uuidV4 } from '@skein/base'
import {
  type BatchResult,
  type CallPorts,
  executeTools,
  type LLMInstance,
  type Tool,
  type ToolBatch,
  type ToolCall,
  type ToolEffect,
  type ToolUseStrategy,
  type Turn,
} from '@skein/ai'
import type { AgentStrategy, StepEffect } from '../contract/agent-types.ts'
import { uapEvent } from '../contract/event.ts'
import type { AgentState } from '../state/state.ts'
import { openCallsOf } from '../state/transcript.ts'
import { CallBatch, type CallsInput, type CallsResult } from './calls.ts'
import { type Inference, runInference, toAgentEvent } from './inference.ts'
import {
  type Batches,
  drain,
  followSubagents,
  mergeLive,
  type SubagentSink,
} from './live-events.ts'

/** One step: an inference and the tools it asks for. Calls that the state leaves open are run first. */
export interface StepInput extends CallsInput {
  readonly llm: LLMInstance
  readonly tools: readonly Tool[]
  /** How many messages at the end of the state are new. */
  readonly inputs?: number
  /** Default: the state's. */
  readonly step?: number
  readonly agentId?: string
  /** Whether the vendor streams and the step yields events. Default true. */
  readonly streaming?: boolean
  readonly signal?: AbortSignal
  /** False leaves the calls open. Default true. */
  readonly runsTools?: boolean
  readonly mode?: ToolBatch['mode']
  /** The tool strategy for a model that is opaque; others have their own. */
  readonly toolStrategy?: ToolUseStrategy
  /** Names of tools that succeeded earlier; they satisfy `dependsOn`. */
  readonly succeeded?: ReadonlySet<string>
  /** Extra fields of the tools' context. */
  readonly context?: (call: ToolCall, state: AgentState) => object
  readonly hooks?: Pick<AgentStrategy, 'onAct' | 'onObserve'>
  /** Awaited before and after each inference and each call. */
  readonly commit?: (effect: StepEffect) => void | Promise<void>
  /** The `state` of the model's middleware, one for all steps of a run. */
  readonly middlewareState?: Map<string, unknown>
  /** Called before tools run, with what will know the tokens of their sub-agents. */
  readonly onSubagents?: (sink: SubagentSink) => void
  readonly clock?: Clock
  readonly ids?: IdSource
}

/** What came of one step. */
export interface StepResult extends CallsResult {
  /** The turn of the inference; absent when the step only ran open calls. */
  readonly turn?: Turn
}

/**
 * The step engine: yields events while the step happens and returns what came of it. All built-in
 * strategies are arrangements of it. A state whose last message has open calls continues with those.
 */
export async function* step(input: StepInput): Batches<StepResult> {
  const { state, llm, runsTools = true, inputs = 0, streaming = true } = input
  const { signal, middlewareState, commit } = input
  const waiting = openCallsOf(state.messages)
  if (waiting.length > 0) return yield* act(input, waiting, new Map())
  const number = input.step ?? state.step
  await commit?.({ type: 'inference_start', step: number, state })
  let inference: Inference
  try {
    const sent = state.messages
    inference = yield* runInference({
      llm,
      messages: sent,
      inputs,
      streaming,
      signal,
      middlewareState,
    })
  } catch (error) {
    if (error instanceof Error) inferenceErrors.add(error)
    throw error
  }
  const { turn, messages, indexes } = inference
  await commit?.({ type: 'inference_end', step: number, turn })
  const next = state.withMessages(messages)
  const calls = openCallsOf(messages)
  if (!runsTools || calls.length === 0) {
    const openCalls = calls.map(({ toolCallId }) => ({ toolCallId }))
    const nothing = { executions: [], warnings: [], interrupts: [] }
    return { state: next, turn, messages, openCalls, ...nothing }
  }
  const acted = yield* act({ ...input, state: next }, calls, indexes)
  return { ...acted, turn, messages: [...messages, ...acted.messages] }
}

const inferenceErrors = new WeakSet<Error>()

/** Whether the model failed, rather than a hook or a journal of the application. */
export function isInferenceError(error: unknown): boolean {
  return error instanceof Error && inferenceErrors.has(error)
}

/** Runs the open calls of the last message, except those that wait for an answer. */
async function* act(
  input: StepInput,
  calls: readonly ToolCall[],
  indexes: ReadonlyMap<string, number>,
): Batches<StepResult> {
  const { state, hooks, agentId = '', streaming = true, clock = systemClock, ids = uuidV4 } = input
  const origin = { step: input.step ?? state.step, agentId }
  const batch = new CallBatch(input, calls)
  if (streaming) yield [uapEvent(origin, 'action', { toolCalls: batch.calls })]
  await hooks?.onAct?.(origin.step, batch.calls)
  const { live, sink } = followSubagents(streaming, () => origin)
  input.onSubagents?.(sink)
  const tools = runCalls(input, batch, { sink, indexes })
  let result: BatchResult
  try {
    result = streaming ? yield* mergeLive(tools, live) : await drain(tools)
  } catch (error) {
    sink.close(messageOf(error), clock.now())
    if (streaming) yield live.take() // every sub-agent that started also ends
    throw error
  } finally {
    void tools.return({ settled: [], warnings: [] })
  }
  sink.close('The call ended.', clock.now())
  const outcome = batch.end(result, { ids, clock })
  await hooks?.onObserve?.(origin.step, outcome.executions)
  if (streaming)
    yield [...live.take(), uapEvent(origin, 'observation', { observations: outcome.executions })]
  const traced = sink.traces.reduce((next, one) => next.withSubagentTrace(one), outcome.state)
  return { ...outcome, state: traced }
}

/** Runs calls through the model's instance, so that its tool strategy and middleware see each of them. */
async function* runCalls(
  input: StepInput,
  batch: CallBatch,
  { sink, indexes }: { sink: SubagentSink; indexes: ReadonlyMap<string, number> },
): Batches<BatchResult> {
  const { state, llm, commit, signal, mode, succeeded, middlewareState } = input
  const { streaming = true, clock = systemClock, toolStrategy: strategy } = input
  const step = input.step ?? state.step
  const journal = commit && { commit: (effect: ToolEffect) => commit({ ...effect, step }) }
  const task = {
    calls: batch.calls,
    tools: input.tools,
    settled: batch.settled,
    indexes,
    mode,
    succeeded,
    open(call: ToolCall): CallPorts {
      const { isApproved, context } = batch.portsOf(call)
      const own = { ...input.context?.(call, state), ...context, onSubagentEvent: sink.push }
      return { isApproved, context: own, journal }
    },
  }
  const events =
    typeof llm.executeTools === 'function'
      ? llm.executeTools({ ...task, signal, streaming, state: middlewareState })
      : executeTools({ ...task, signal: signal ?? new AbortController().signal, clock, strategy })
  try {
    for (;;) {
      const next = await events.next()
      if (next.done) return next.value
      if (streaming) yield next.value.map(toAgentEvent)
    }
  } finally {
    await events.return({ settled: [], warnings: [] })
  }
}
