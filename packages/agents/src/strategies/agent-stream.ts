import { type Message, UserMessage } from '@skein/ai'
import { BatchReader } from '@skein/ai/engine'
import { AGENT_ORIGIN, invalidUse } from '../contract/agent-error.ts'
import type {
  AgentInput,
  AgentRun,
  ExecutionContext,
  GenerateResult,
} from '../contract/agent-types.ts'
import type { AgentStreamEvent } from '../contract/event.ts'
import type { AgentState } from '../state/state.ts'
import { LiveEvents } from '../step/live-events.ts'

/** The run that a stream reads. */
export interface AgentStreamSource {
  /** Starts the run, when its events or its result are first read. */
  readonly run: (live: LiveEvents) => Promise<GenerateResult>
  readonly controller: AbortController
  readonly state: () => AgentState
  readonly steer: (message: AgentInput) => void
}

/** The stream that strategies and agents return. */
export class AgentStream implements AgentRun {
  readonly #reader: BatchReader<AgentStreamEvent, GenerateResult>
  readonly #source: AgentStreamSource
  readonly #live = new LiveEvents()
  #isOver = false

  constructor(source: AgentStreamSource) {
    this.#source = source
    const { controller } = source
    const run = (): Promise<GenerateResult> =>
      source.run(this.#live).finally(() => (this.#isOver = true))
    this.#reader = new BatchReader({
      batches: this.#live.read(run),
      controller,
      isFinal: () => this.#live.isFinal,
      origin: AGENT_ORIGIN,
    })
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
    if (this.#isOver || this.#live.isFinal || this.#source.controller.signal.aborted)
      throw invalidUse(
        'The run is over, so it cannot be steered.',
        'Start another run: agent.generate(message, run.state).',
      )
    this.#source.steer(message)
  }

  [Symbol.asyncIterator](): AsyncIterator<AgentStreamEvent, undefined> {
    return this.#reader[Symbol.asyncIterator]()
  }
}

/** Converts an input to a message. */
export function toUserMessage(
  input: AgentInput,
  { ids, clock }: Pick<ExecutionContext, 'ids' | 'clock'>,
): Message {
  return typeof input === 'string' ? new UserMessage(input, { ids, clock }) : input
}
