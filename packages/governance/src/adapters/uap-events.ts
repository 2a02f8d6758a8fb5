import type { JsonValue } from '@skein/base'
import type { Result } from '../result.ts'
import type { UapContext, UapResult, UapStrategy } from './uap-types.ts'

/** Stands between the inner stream and the reader. */
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
    this.#held = [] // of an attempt that was not delivered
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

  /** Confirms or retracts what was told, or tells what was held back. */
  end(result: Result<JsonValue>): void {
    const { agent, state } = this.#context
    if (result.outcome === 'success') this.#held.forEach((event) => this.#emit(event))
    const request_id = 'receipt' in result ? result.receipt.request_id : result.request_id
    const data = { state: result.state, outcome: result.outcome, request_id }
    const uap = { type: 'governed', step: state.step, agentId: agent.id, data }
    this.#emit({ source: 'uap', uap })
  }
}
