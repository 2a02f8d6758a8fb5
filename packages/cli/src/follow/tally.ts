import type { TreeEvent } from '@skein/runtime/client'

/** What a run has used so far, counted from its events. */
export class Tally {
  turns = 0
  tokens = 0
  readonly startedAt: number = performance.now()
  #costUsd = 0
  #isCostKnown = true

  add({ path, event }: TreeEvent): void {
    if (event.type === 'turn_start' && path.length === 1) this.turns++
    if (event.type !== 'model_answered' || event.error) return
    const { usage = {}, costUsd } = event
    this.tokens += Number(usage['input_tokens'] ?? 0) + Number(usage['output_tokens'] ?? 0)
    // One answer without a price makes the sum a guess.
    if (costUsd === undefined) this.#isCostKnown = false
    else this.#costUsd += costUsd
  }

  get cost(): string {
    return this.#isCostKnown ? `$${this.#costUsd.toFixed(4)}` : 'unknown'
  }

  get elapsedMs(): number {
    return performance.now() - this.startedAt
  }
}
