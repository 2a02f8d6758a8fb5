import type { TreeEvent } from '@skein/runtime/client'

/** What a run has used so far, counted from its events. */
export class Tally {
  tokens = 0
  readonly startedAt: number = performance.now()
  readonly #turns = new Set<string>()
  #costUsd = 0
  #isCostKnown = true

  add({ path, event }: TreeEvent): void {
    if (path.length === 1 && 'turnId' in event && event.turnId !== undefined)
      this.#turns.add(event.turnId)
    if (event.type !== 'model_answered' || event.error) return
    const { usage = {}, costUsd } = event
    this.tokens += Number(usage['input_tokens'] ?? 0) + Number(usage['output_tokens'] ?? 0)
    // One answer without a price makes the sum a guess.
    if (costUsd === undefined) this.#isCostKnown = false
    else this.#costUsd += costUsd
  }

  /** Of the thread itself; one that was parked counts where it goes on. */
  get turns(): number {
    return this.#turns.size
  }

  get cost(): string {
    return this.#isCostKnown ? `$${this.#costUsd.toFixed(4)}` : 'unknown'
  }

  get elapsedMs(): number {
    return performance.now() - this.startedAt
  }
}
