import type { LLMInstance, Message, StreamEvent, Turn } from '@skein/ai'
import type { AgentStreamEvent } from './event.ts'

/** What one inference needs. */
export interface InferenceTask {
  readonly llm: LLMInstance
  /** Everything to send. */
  readonly messages: readonly Message[]
  /** How many at the end are new; an opaque model gets those as its inputs. */
  readonly inputs: number
  readonly streaming: boolean
  readonly signal?: AbortSignal | undefined
  /** The `state` of the model's middleware, one for the whole run. */
  readonly middlewareState?: Map<string, unknown> | undefined
}

export interface Inference {
  readonly turn: Turn
  /** What the model and, if it is opaque, its tools added to the history. */
  readonly messages: readonly Message[]
  /** Block index of each call, for the events of its execution. */
  readonly indexes: ReadonlyMap<string, number>
}

type Batches<R> = AsyncGenerator<readonly AgentStreamEvent[], R>

/** One inference without tools. A model that has only `generate` and `stream` is asked once (A1). */
export async function* infer(task: InferenceTask): Batches<Inference> {
  const indexes = new Map<string, number>()
  if (typeof task.llm.infer !== 'function') return yield* inferOpaque(task)
  const { llm, messages, streaming, signal, middlewareState: state } = task
  const events = llm.infer(messages, {
    streaming,
    ...(signal && { signal }),
    ...(state && { state }),
  })
  let isDone = false
  try {
    for (;;) {
      const step = await events.next()
      if (step.done) {
        isDone = true
        return { turn: step.value, messages: step.value.messages, indexes }
      }
      noteCalls(step.value, indexes)
      if (streaming) yield step.value.map(toAgentEvent)
    }
  } finally {
    if (!isDone) await events.return(undefined as never) // the reader left; nobody takes the turn
  }
}

export function toAgentEvent(upp: StreamEvent): AgentStreamEvent {
  return { source: 'upp', upp }
}

function noteCalls(events: readonly StreamEvent[], indexes: Map<string, number>): void {
  for (const { type, index, delta } of events)
    if (type === 'content_block_start' && delta.toolCallId !== undefined)
      indexes.set(delta.toolCallId, index)
}

/** Such a model runs its own tools; what it brings is whatever the history does not have yet. */
async function* inferOpaque(task: InferenceTask): Batches<Inference> {
  const { llm, messages, inputs, streaming } = task
  const history = messages.slice(0, messages.length - inputs)
  const given = messages.slice(messages.length - inputs)
  const turn = streaming
    ? yield* streamOpaque(task, history, given)
    : await llm.generate(history, ...given)
  const known = new Set(messages.map(({ id }) => id))
  const added = turn.messages.filter(({ id }) => !known.has(id))
  return { turn, messages: added, indexes: new Map() }
}

async function* streamOpaque(
  { llm, signal }: InferenceTask,
  history: readonly Message[],
  inputs: readonly Message[],
): Batches<Turn> {
  const stream = llm.stream(history, ...inputs)
  const abort = (): void => stream.abort(signal?.reason)
  signal?.addEventListener('abort', abort, { once: true })
  try {
    for await (const event of stream) yield [toAgentEvent(event)]
    return await stream.turn
  } finally {
    signal?.removeEventListener('abort', abort)
  }
}
