import { BatchReader, type Message, UserMessage } from '@skein/ai'
import { AGENT_ORIGIN, invalidUse } from '../contract/agent-error.ts'
import type {
  AgentInput,
  AgentRun,
  AgentStreamResult,
  ExecutionContext,
  GenerateResult,
} from '../contract/agent-types.ts'
import type { AgentStreamEvent } from '../contract/event.ts'
import type { AgentState } from '../state/state.ts'
import type { Batches } from '../step/live-events.ts'

/** The run that a stream reads. */
export interface AgentStreamSource {
  /** The batches of the run, which starts when the first one is read. */
  readonly batches: Batches<GenerateResult>
  readonly controller: AbortController
  /** True when only the end hooks are left; leaving the loop then does not abort the run. */
  readonly isFinal?: () => boolean
  readonly state: () => AgentState
  readonly steer: (message: AgentInput) => void
}

const sources = new WeakMap<AgentStreamResult, AgentStreamSource>()

/** The stream that strategies and agents return. */
export class AgentStream implements AgentRun {
  readonly #reader: BatchReader<AgentStreamEvent, GenerateResult>
  readonly #source: AgentStreamSource
  #isOver = false

  constructor(source: AgentStreamSource) {
    this.#source = source
    const batches = this.#untilEnd(source)
    this.#reader = new BatchReader({ ...source, batches, origin: AGENT_ORIGIN })
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
    if (this.#isOver || this.#source.isFinal?.() || this.#source.controller.signal.aborted)
      throw invalidUse(
        'The run is over, so it cannot be steered.',
        'Start another run: agent.generate(message, run.state).',
      )
    this.#source.steer(message)
  }

  /** Reads the batches of the run and notes its end, however it ends. */
  async *#untilEnd({ batches }: AgentStreamSource): Batches<GenerateResult> {
    try {
      return yield* batches
    } finally {
      this.#isOver = true
    }
  }

  [Symbol.asyncIterator](): AsyncIterator<AgentStreamEvent, undefined> {
    return this.#reader[Symbol.asyncIterator]()
  }
}

/**
 * Returns the batches of a stream. For an `AgentStream`, which must not have been read yet, this is the
 * generator of its run, without the reader's queue. For any other stream, each event is a batch.
 */
export function batchesOf(stream: AgentStreamResult): Batches<GenerateResult> {
  return sources.get(stream)?.batches ?? eventsOf(stream)
}

async function* eventsOf(stream: AgentStreamResult): Batches<GenerateResult> {
  for await (const event of stream) yield [event]
  return stream.result
}

/** Converts an input to a message. */
export function toUserMessage(
  input: AgentInput,
  { ids, clock }: Pick<ExecutionContext, 'ids' | 'clock'>,
): Message {
  return typeof input === 'string' ? new UserMessage(input, { ids, clock }) : input
}
