import type { TreeEvent } from '@skein/runtime/client'

/** What a run has used so far, counted from its events. */
export class Tally {
  tokens = 0
  readonly startedAt: number = performance.now()
  readonly #turns = new Set<string>()
  #costUsd: number | undefined
  #isCostKnown = true

  add({ path, event }: TreeEvent): void {
    const isWork = event.type === 'step_start' || event.type === 'tool_execution_start'
    if (isWork && path.length === 1) this.#turns.add(event.turnId)
    if (event.type !== 'model_answered' || event.error) return
    const { usage = {}, costUsd } = event
    this.tokens += Number(usage['input_tokens'] ?? 0) + Number(usage['output_tokens'] ?? 0)
    // One answer without a price makes the sum a guess.
    if (costUsd === undefined) this.#isCostKnown = false
    else this.#costUsd = (this.#costUsd ?? 0) + costUsd
  }

  /** Of the thread itself; one that was parked counts where it goes on. */
  get turns(): number {
    return this.#turns.size
  }

  get cost(): string {
    return this.#isCostKnown && this.#costUsd !== undefined
      ? `$${this.#costUsd.toFixed(4)}`
      : 'unknown'
  }

  get elapsedMs(): number {
    return performance.now() - this.startedAt
  }
}
