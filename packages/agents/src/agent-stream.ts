import { BatchReader } from '@skein/ai'
import type { AgentInput, AgentRun, AgentStreamResult, GenerateResult } from './agent.ts'
import { AGENT_ORIGIN } from './agent-error.ts'
import type { AgentStreamEvent } from './event.ts'
import type { AgentState } from './state.ts'

/** The run behind a stream. */
export interface AgentStreamSource {
  /** Starts nothing before it is first read. */
  readonly batches: AsyncGenerator<readonly AgentStreamEvent[], GenerateResult>
  readonly controller: AbortController
  /** True when only the end hooks are left: leaving then is no abort. */
  readonly isFinal?: () => boolean
  readonly state: () => AgentState
  readonly steer: (message: AgentInput) => void
}

const sources = new WeakMap<AgentStreamResult, AgentStreamSource>()

/** A stream as strategies and agents give it. */
export class AgentStream implements AgentRun {
  readonly #reader: BatchReader<AgentStreamEvent, GenerateResult>
  readonly #source: AgentStreamSource

  constructor(source: AgentStreamSource) {
    this.#source = source
    this.#reader = new BatchReader({ ...source, origin: AGENT_ORIGIN })
    sources.set(this, source)
  }

  get result(): Promise<GenerateResult> {
    return this.#reader.result
  }

  get state(): AgentState {
    return this.#source.state()
  }

  abort(reason?: unknown): void {
    this.#reader.abort(reason)
  }

  steer(message: AgentInput): void {
    this.#source.steer(message)
  }

  [Symbol.asyncIterator](): AsyncIterator<AgentStreamEvent, undefined> {
    return this.#reader[Symbol.asyncIterator]()
  }
}

/** The batches of a stream that nobody reads yet, without a queue in between; of others, its events. */
export function batchesOf(
  stream: AgentStreamResult,
): AsyncGenerator<readonly AgentStreamEvent[], GenerateResult> {
  return sources.get(stream)?.batches ?? eventsOf(stream)
}

async function* eventsOf(
  stream: AgentStreamResult,
): AsyncGenerator<readonly AgentStreamEvent[], GenerateResult> {
  for await (const event of stream) yield [event]
  return stream.result
}

/** Runs a generator to its end; events go nowhere. */
export async function drain<R>(batches: AsyncGenerator<unknown, R>): Promise<R> {
  for (;;) {
    const step = await batches.next()
    if (step.done) return step.value
  }
}
