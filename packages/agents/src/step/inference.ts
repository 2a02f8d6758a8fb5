import type { LLMInstance, Message, StreamEvent, Turn } from '@skein/ai'
import type { AgentStreamEvent } from '../contract/event.ts'
import type { Batches } from './live-events.ts'

/** What one inference needs. */
export interface InferenceTask {
  readonly llm: LLMInstance
  /** Everything to send. */
  readonly messages: readonly Message[]
  /** How many messages at the end are new; an opaque model gets those as its inputs. */
  readonly inputs: number
  readonly streaming: boolean
  readonly signal?: AbortSignal
  /** The `state` of the model's middleware, one for the whole run. */
  readonly middlewareState?: Map<string, unknown>
}

/** What one inference brought. */
export interface Inference {
  readonly turn: Turn
  /** What the model and, if it is opaque, its tools added to the history. */
  readonly messages: readonly Message[]
  /** Block index of each call, for the events of its execution. */
  readonly indexes: ReadonlyMap<string, number>
}

/** One inference without tools. An opaque model, which has only `generate` and `stream`, is asked once. */
export async function* runInference(task: InferenceTask): Batches<Inference> {
  if (typeof task.llm.infer !== 'function') return yield* inferOpaque(task)
  const { llm, messages, streaming, signal, middlewareState: state } = task
  const indexes = new Map<string, number>()
  const events = llm.infer(messages, { streaming, signal, state })
  let isDone = false
  try {
    for (;;) {
      const step = await events.next()
      if (step.done) {
        isDone = true
        return { turn: step.value, messages: step.value.messages, indexes }
      }
      for (const { type, index, delta } of step.value)
        if (type === 'content_block_start' && delta.toolCallId !== undefined)
          indexes.set(delta.toolCallId, index)
      if (streaming) yield step.value.map(toAgentEvent)
    }
  } finally {
    if (!isDone) await events.return(undefined as never) // the reader left; nobody reads the turn
  }
}

/** An event of the model as an event of the agent. */
export function toAgentEvent(upp: StreamEvent): AgentStreamEvent {
  return { source: 'upp', upp }
}

/** An opaque model runs its own tools; its new messages are those that the history does not have. */
async function* inferOpaque(task: InferenceTask): Batches<Inference> {
  const { llm, messages, inputs, streaming, signal } = task
  const history = messages.slice(0, messages.length - inputs)
  const given = messages.slice(messages.length - inputs)
  let turn: Turn
  if (streaming) {
    const stream = llm.stream(history, ...given)
    const abort = (): void => stream.abort(signal?.reason)
    signal?.addEventListener('abort', abort, { once: true })
    try {
      for await (const event of stream) yield [toAgentEvent(event)]
      turn = await stream.turn
    } finally {
      signal?.removeEventListener('abort', abort)
    }
  } else turn = await llm.generate(history, ...given)
  const known = new Set(messages.map(({ id }) => id))
  const added = turn.messages.filter(({ id }) => !known.has(id))
  return { turn, messages: added, indexes: new Map() }
}
