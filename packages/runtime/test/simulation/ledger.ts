/** The world outside of the runtime: what tools did to it, counted where no crash can reach. */
export class Ledger {
  readonly effects: Map<string, LedgerEntry> = new Map()

  /** A tool takes effect. */
  note(effect: Omit<LedgerEntry, 'count'>): void {
    const known = this.effects.get(effect.key)
    if (known) known.count++
    else this.effects.set(effect.key, { ...effect, count: 1 })
  }

  has(tool: string, ref: string): boolean {
    return [...this.effects.values()].some((one) => one.tool === tool && one.ref === ref)
  }
}

export interface LedgerEntry {
  /** The idempotency key of the call. */
  readonly key: string
  readonly tool: string
  /** What the model named; unique per call. */
  readonly ref: string
  readonly threadId: string
  readonly mayRepeat: boolean
  count: number
}
