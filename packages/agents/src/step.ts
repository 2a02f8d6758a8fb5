import { systemClock, uuidV4, type Clock, type IdSource } from '@skein/base'
import {
  executeTools,
  type BatchResult,
  type CallPorts,
  type LLMInstance,
  type OpenCall,
  type StreamEvent,
  type Tool,
  type ToolBatch,
  type ToolCall,
  type ToolExecution,
  type ToolOutcome,
  type ToolUseStrategy,
  type Turn,
  type Warning,
} from '@skein/ai'
import { messageOf } from './agent-error.ts'
import { approving } from './approving.ts'
import { CallBatch } from './call-batch.ts'
import type { AgentStreamEvent, UAPEventData, UAPEventType } from './event.ts'
import type { StepEffect } from './execution.ts'
import { infer, toAgentEvent, type Inference } from './inference.ts'
import type { Answers, Interrupt } from './interrupt.ts'
import { LiveEvents, mergeLive } from './live-events.ts'
import type { AgentState } from './state.ts'
import type { AgentStrategy } from './strategy.ts'
import { SubagentSink } from './subagent-sink.ts'
import { openCallsOf } from './transcript.ts'

/** One step: an inference and the tools it asks for. Calls that are open at the end are run first. */
export interface StepInput {
  readonly state: AgentState
  readonly llm: LLMInstance
  readonly tools: readonly Tool[]
  /** Messages at the end of the state that are new. */
  readonly inputs?: number
  /** Default: the state's. */
  readonly step?: number
  readonly agentId?: string
  /** Whether the vendor streams and events are given. Default true. */
  readonly streaming?: boolean
  readonly signal?: AbortSignal
  /** False leaves the calls open. Default true. */
  readonly runsTools?: boolean
  readonly mode?: ToolBatch['mode']
  /** Of a model that is opaque; others know their own. */
  readonly toolStrategy?: ToolUseStrategy
  /** Outcomes that are known, by call id: those calls are not run again. */
  readonly settled?: ReadonlyMap<string, ToolOutcome>
  /** For the interrupts of a suspended state. */
  readonly answers?: Answers
  /** Names of tools that succeeded earlier; they satisfy `dependsOn`. */
  readonly succeeded?: ReadonlySet<string>
  /** Extra fields of the tools' context. */
  readonly context?: (call: ToolCall, state: AgentState) => object
  readonly hooks?: Pick<AgentStrategy, 'onAct' | 'onObserve'>
  /** Awaited before and after each inference and each call. */
  readonly commit?: (effect: StepEffect) => void | Promise<void>
  /** The model's middleware sees one state in all steps of a run. */
  readonly middlewareState?: Map<string, unknown>
  /** Told what sub-agents spent. */
  readonly onSubagents?: (sink: SubagentSink) => void
  readonly clock?: Clock
  readonly ids?: IdSource
}

export interface StepResult {
  /** With everything that was produced, or suspended if calls wait. */
  readonly state: AgentState
  /** The inference's; absent when the step only ran open calls. */
  readonly turn?: Turn
  /** What was added to the history, in order. */
  readonly messages: Turn['messages']
  readonly executions: readonly ToolExecution[]
  readonly warnings: readonly Warning[]
  readonly openCalls: readonly OpenCall[]
  readonly interrupts: readonly Interrupt[]
}

type Batches<R> = AsyncGenerator<readonly AgentStreamEvent[], R>

/**
 * The step engine: yields events while it happens and returns what came of it. All of the built-in
 * strategies are arrangements of it. A state whose last message has open calls continues there.
 */
export async function* step(input: StepInput): Batches<StepResult> {
  const { state, runsTools = true } = input
  const waiting = openCallsOf(state.messages)
  if (waiting.length > 0) return yield* act(input, waiting, new Map())
  const { turn, messages, indexes } = yield* think(input)
  const next = state.withMessages(messages)
  const base = { state: next, turn, messages }
  const openCalls = openCallsOf(messages)
  if (!runsTools || openCalls.length === 0)
    return { ...base, executions: [], warnings: [], openCalls: toOpen(openCalls), interrupts: [] }
  const acted = yield* act({ ...input, state: next }, openCalls, indexes)
  return { ...acted, turn, messages: [...messages, ...acted.messages] }
}

const inferenceErrors = new WeakSet<Error>()

/** Whether the model failed, rather than a hook or a journal of the application. */
export function isInferenceError(error: unknown): boolean {
  return error instanceof Error && inferenceErrors.has(error)
}

async function* think(input: StepInput): Batches<Inference> {
  const { state, llm, signal, middlewareState, streaming = true, inputs = 0 } = input
  const step = input.step ?? state.step
  await input.commit?.({ type: 'inference_start', step, state })
  let inference: Inference
  try {
    const { messages } = state
    inference = yield* infer({ llm, messages, inputs, streaming, signal, middlewareState })
  } catch (error) {
    if (error instanceof Error) inferenceErrors.add(error)
    throw error
  }
  await input.commit?.({ type: 'inference_end', step, turn: inference.turn })
  return inference
}

/** Runs the open calls of the last message, as far as they do not wait for an answer. */
async function* act(
  input: StepInput,
  calls: readonly ToolCall[],
  indexes: ReadonlyMap<string, number>,
): Batches<StepResult> {
  const { state, hooks, streaming = true, clock = systemClock, ids = uuidV4 } = input
  const step = input.step ?? state.step
  const batch = new CallBatch(input, calls)
  if (streaming) yield [uapEvent(input, 'action', { toolCalls: batch.calls })]
  await hooks?.onAct?.(step, batch.calls)
  const live = new LiveEvents()
  const sink = new SubagentSink((event) => {
    const { type, ...data } = event
    if (streaming) live.push(uapEvent(input, type, data))
  })
  input.onSubagents?.(sink)
  const tools = run(input, batch, { sink, indexes })
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
  await hooks?.onObserve?.(step, outcome.executions)
  if (streaming)
    yield [...live.take(), uapEvent(input, 'observation', { observations: outcome.executions })]
  return { ...outcome, state: withTraces(outcome.state, sink) }
}

/** Through the model's instance, so that its strategy and middleware see every call. */
async function* run(
  input: StepInput,
  batch: CallBatch,
  { sink, indexes }: { sink: SubagentSink; indexes: ReadonlyMap<string, number> },
): Batches<BatchResult> {
  const { state, llm, commit, streaming = true, clock = systemClock } = input
  const step = input.step ?? state.step
  const task = {
    calls: batch.calls,
    tools: approving(input.tools, batch.approved),
    settled: batch.settled,
    indexes,
    open: (call: ToolCall): CallPorts => ({
      context: {
        ...input.context?.(call, state),
        ...batch.contextOf(call),
        onSubagentEvent: sink.push,
      },
      journal: commit && { commit: (effect) => commit({ ...effect, step }) },
    }),
    ...(input.signal && { signal: input.signal }),
    ...(input.mode && { mode: input.mode }),
    ...(input.succeeded && { succeeded: input.succeeded }),
  }
  const { middlewareState, toolStrategy: strategy } = input
  const events =
    typeof llm.executeTools === 'function'
      ? llm.executeTools({ ...task, streaming, ...(middlewareState && { state: middlewareState }) })
      : executeTools({
          ...task,
          clock,
          signal: input.signal ?? new AbortController().signal,
          ...(strategy && { strategy }),
        })
  return yield* toAgentEvents(events, streaming)
}

async function* toAgentEvents(
  events: AsyncGenerator<readonly StreamEvent[], BatchResult>,
  streaming: boolean,
): Batches<BatchResult> {
  try {
    for (;;) {
      const step = await events.next()
      if (step.done) return step.value
      if (streaming) yield step.value.map(toAgentEvent)
    }
  } finally {
    await events.return({ settled: [], warnings: [] })
  }
}

function toOpen(calls: readonly ToolCall[]): readonly OpenCall[] {
  return calls.map(({ toolCallId }) => ({ toolCallId }))
}

async function drain<R>(batches: Batches<R>): Promise<R> {
  for (;;) {
    const step = await batches.next()
    if (step.done) return step.value
  }
}

function withTraces(state: AgentState, { traces }: SubagentSink): AgentState {
  return traces.reduce((next, trace) => next.withSubagentTrace(trace), state)
}

/** An event of this step. */
export function uapEvent<Type extends UAPEventType>(
  { state, step = state.step, agentId = '' }: Pick<StepInput, 'state' | 'step' | 'agentId'>,
  type: Type,
  data: UAPEventData[Type],
): AgentStreamEvent {
  // The compiler cannot pair a type with its data across a union.
  return { source: 'uap', uap: { type, step, agentId, data } as never }
}
