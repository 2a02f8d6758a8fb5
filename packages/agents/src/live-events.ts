import type { AgentStreamEvent } from './event.ts'

/** Events that come from the side, e.g. of sub-agents inside a running tool. */
export class LiveEvents {
  #events: AgentStreamEvent[] = []
  #wake: () => void = () => {}

  push(event: AgentStreamEvent): void {
    this.#events.push(event)
    this.#wake()
  }

  wake(): void {
    this.#wake()
  }

  take(): readonly AgentStreamEvent[] {
    const events = this.#events
    if (events.length > 0) this.#events = []
    return events
  }

  change(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve))
  }
}

type Settled<T, R> = { readonly step: IteratorResult<T, R> } | { readonly error: unknown }

/** The batches of a source and, while they are waited for, what comes from the side. */
export async function* mergeLive<R>(
  source: AsyncGenerator<readonly AgentStreamEvent[], R>,
  live: LiveEvents,
): AsyncGenerator<readonly AgentStreamEvent[], R> {
  let settled: Settled<readonly AgentStreamEvent[], R> | undefined
  // One handler per batch, not a race per event: a race would pile up on the waiting promise.
  const pull = (): void => {
    source.next().then(
      (step) => {
        settled = { step }
        live.wake()
      },
      (error: unknown) => {
        settled = { error }
        live.wake()
      },
    )
  }
  pull()
  for (;;) {
    const events = live.take()
    if (events.length > 0) yield events
    else if (!settled) await live.change()
    else {
      if ('error' in settled) throw settled.error
      const { step } = settled
      if (step.done) return step.value
      settled = undefined
      yield step.value
      pull()
    }
  }
}
