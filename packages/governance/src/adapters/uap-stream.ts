import type { JsonValue } from '@skein/base'
import type { UppTool } from './upp-tools.ts'
import type { Result } from '../contract/run.ts'

/**
 * An execution strategy of UAP §5.1, with the same members as `ExecutionStrategy` of `@skein/agents`,
 * which is not imported.
 */
export interface UapStrategy {
  readonly name: string
  execute(context: never): Promise<UapResult>
  stream(context: never): UapStream
}

/** The part of an agent call's context that is used here. All other members are passed on unchanged. */
export interface UapContext {
  readonly agent: { readonly id: string }
  readonly llm: {
    with(changes: { readonly tools: readonly UppTool[]; readonly signal: AbortSignal }): unknown
  }
  readonly state: UapState
  readonly tools: readonly { readonly name: string }[]
  readonly signal?: AbortSignal
  readonly resume?: { readonly answers: Readonly<Record<string, UapAnswer>> }
  readonly checkpoint?: (state: UapState) => void | Promise<void>
}

/** The part of an agent's state that is used here. */
export interface UapState {
  readonly step: number
  readonly metadata: Readonly<Record<string, unknown>>
  readonly suspension?: { readonly deferred: readonly UapDeferred[] }
  withMetadata(name: string, value: JsonValue): UapState
}

interface UapDeferred {
  readonly toolCallId: string
  readonly request: { readonly request: unknown }
}

/** The answer to a call that waits. Only approvals with a token, and denials, are used here. */
export interface UapAnswer {
  readonly type: string
  readonly token?: string
  readonly reason?: string
}

/** A call that waits, for example for a person's approval. */
export interface UapInterrupt {
  readonly id: string
  readonly toolCallId: string
  readonly path: readonly string[]
  readonly kind: string
  readonly request: unknown
}

/** The result of a strategy. */
export interface UapResult {
  readonly turn: { readonly data?: unknown; readonly response: { readonly text: string } }
  readonly state: UapState
  readonly interrupts?: readonly UapInterrupt[]
  readonly stopReason?: string
}

/** The stream of a run in progress: its events and, at the end, its result. */
export interface UapStream extends AsyncIterable<object> {
  readonly result: Promise<UapResult>
  abort(reason?: unknown): void
}

/**
 * Passes on the events of the inner strategy: either immediately, marked as unverified, or only after the result
 * was verified and delivered.
 */
export class EventGate {
  readonly #emit: (event: object) => void
  readonly #context: UapContext
  readonly #holds: boolean
  #held: object[] = []

  constructor(emit: (event: object) => void, context: UapContext, holds: boolean) {
    this.#emit = emit
    this.#context = context
    this.#holds = holds
  }

  async read(
    inner: UapStrategy,
    context: UapContext & { readonly signal: AbortSignal },
  ): Promise<UapResult> {
    this.#held = [] // Drops the events of an earlier attempt that was not delivered.
    const stream = inner.stream(context as never)
    const abort = (): void => stream.abort(context.signal.reason)
    context.signal.addEventListener('abort', abort, { once: true })
    try {
      for await (const event of stream)
        if (this.#holds) this.#held.push(event)
        else this.#emit({ ...event, unverified: true })
      return await stream.result
    } finally {
      context.signal.removeEventListener('abort', abort)
    }
  }

  /**
   * Emits the events that were held back, if the call was delivered, and then the event `governed` with
   * the outcome.
   */
  end(result: Result<JsonValue>): void {
    const { agent, state } = this.#context
    if (result.outcome === 'success') this.#held.forEach((event) => this.#emit(event))
    const request_id = 'receipt' in result ? result.receipt.request_id : result.request_id
    const data = { state: result.state, outcome: result.outcome, request_id }
    const uap = { type: 'governed', step: state.step, agentId: agent.id, data }
    this.#emit({ source: 'uap', uap })
  }
}

/** Runs a call, emits its events, and stops when the signal is aborted. */
export type StreamedCall = (
  emit: (event: object) => void,
  signal: AbortSignal,
) => Promise<UapResult>

/**
 * The stream of a governed call. The call starts when events or `result` are first read, and is aborted
 * when the reader leaves the loop early. If no one reads the result, a failure causes no unhandled
 * rejection.
 */
export class GovernedStream implements UapStream {
  readonly #call: StreamedCall
  readonly #controller = new AbortController()
  #running: Promise<UapResult> | undefined
  #events: object[] = []
  #isOver = false
  #wake: () => void = () => {}

  constructor(call: StreamedCall) {
    this.#call = call
  }

  get result(): Promise<UapResult> {
    return (this.#running ??= this.#start())
  }

  abort(reason?: unknown): void {
    this.#controller.abort(reason)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<object, undefined> {
    const { result } = this
    try {
      for (;;) {
        yield* this.#events.splice(0)
        if (this.#events.length > 0) continue
        if (this.#isOver) break
        await new Promise<void>((resolve) => (this.#wake = resolve))
      }
    } finally {
      if (!this.#isOver) this.abort()
    }
    await result // Throws if the call failed.
    return undefined
  }

  #start(): Promise<UapResult> {
    const emit = (event: object): void => {
      this.#events.push(event)
      this.#wake()
    }
    const running = this.#call(emit, this.#controller.signal)
    const end = (): void => {
      this.#isOver = true
      this.#wake()
    }
    running.then(end, end)
    return running
  }
}
