import type { LLMInstance, Message, StreamEvent, Turn } from '@skein/ai'
import type { AgentStreamEvent } from '../contract/event.ts'
import type { LiveEvents } from './live-events.ts'

/** The input of one inference. */
export interface InferenceTask {
  readonly llm: LLMInstance
  /** All messages to send. */
  readonly messages: readonly Message[]
  /**
   * The number of messages at the end that are new. A model with only `generate` and `stream` gets them as
   * its inputs.
   */
  readonly inputs: number
  /** Where the events go, if the run has a reader. Only then the vendor streams its answer. */
  readonly live?: LiveEvents
  readonly signal?: AbortSignal
  /** The `state` of the model's middleware, shared by the whole run. */
  readonly middlewareState?: Map<string, unknown>
  /** The number of this inference in its run, from 1. */
  readonly cycle?: number
  /** How many times the model is asked again after a structured answer that does not fit. */
  readonly repair?: number
}

/** The result of one inference. */
export interface Inference {
  readonly turn: Turn
  /** The messages added to the history by the model and, if the model runs its tools itself, by its tools. */
  readonly messages: readonly Message[]
  /** By call id, the index of the call's block in the answer, for the events of the call; empty without a reader. */
  readonly indexes: ReadonlyMap<string, number>
}

/**
 * Runs one inference, but not the tools that the model calls in its answer. An opaque model, which has only
 * `generate` and `stream`, runs its tools itself.
 */
export async function runInference(task: InferenceTask): Promise<Inference> {
  if (typeof task.llm.infer !== 'function') return inferOpaque(task)
  const { llm, messages, live, signal, middlewareState: state, cycle, repair } = task
  const indexes = new Map<string, number>()
  const streaming = live !== undefined
  const options = { streaming, events: streaming, signal, state, cycle, repair }
  const events = llm.infer(messages, options)
  for (;;) {
    const step = await events.next()
    if (step.done) return { turn: step.value, messages: step.value.messages, indexes }
    if (!live) continue
    for (const { type, index, delta } of step.value)
      if (type === 'content_block_start' && delta.toolCallId !== undefined)
        indexes.set(delta.toolCallId, index)
    await live.emit(step.value.map(toAgentEvent))
  }
}

/** Wraps an event of the model as an event of the agent. */
export function toAgentEvent(upp: StreamEvent): AgentStreamEvent {
  return { source: 'upp', upp }
}

/** Calls an opaque model, which runs its own tools. Its new messages are those missing from the history. */
async function inferOpaque(task: InferenceTask): Promise<Inference> {
  const { llm, messages, inputs, live, signal } = task
  const history = messages.slice(0, messages.length - inputs)
  const given = messages.slice(messages.length - inputs)
  let turn: Turn
  if (live) {
    const stream = llm.stream(history, ...given)
    const abort = (): void => stream.abort(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    try {
      for await (const event of stream) await live.emit([toAgentEvent(event)])
      turn = await stream.turn
    } finally {
      signal?.removeEventListener('abort', abort)
    }
  } else turn = await llm.generate(history, ...given)
  const previousIds = new Set(messages.map(({ id }) => id))
  const newMessages = turn.messages.filter(({ id }) => !previousIds.has(id))
  return { turn, messages: newMessages, indexes: new Map() }
}
