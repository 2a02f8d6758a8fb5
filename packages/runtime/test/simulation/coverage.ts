import type { CrashMoment } from '../../src/testing/simulation.ts'

/** A commit that joins several points counts for each of them, and under its own name. */
function namesOf(point: string): ReadonlySet<string> {
  return new Set([point, ...point.split('+')])
}

/** How often each commit point was passed, and how often a process died there. */
export class Coverage {
  readonly points: Map<string, { passed: number; before: number; after: number }> = new Map()
  /** What befell calls, and where: `stop @ call_start`. */
  readonly strikes: Map<string, number> = new Map()

  pass(point: string): void {
    for (const name of namesOf(point)) this.#of(name).passed++
  }

  crash(point: string, moment: CrashMoment): void {
    for (const name of namesOf(point)) this.#of(name)[moment]++
  }

  strike(kind: string, moment: string): void {
    const name = `${kind} @ ${moment}`
    this.strikes.set(name, (this.strikes.get(name) ?? 0) + 1)
  }

  /** Adds what another one counted. */
  add({ points, strikes }: ReturnType<Coverage['toJSON']>): void {
    for (const [name, count] of Object.entries(strikes))
      this.strikes.set(name, (this.strikes.get(name) ?? 0) + count)
    for (const [point, { passed, before, after }] of Object.entries(points)) {
      const own = this.#of(point)
      own.passed += passed
      own.before += before
      own.after += after
    }
  }

  toJSON(): {
    readonly points: Record<string, { passed: number; before: number; after: number }>
    readonly strikes: Record<string, number>
  } {
    return {
      points: Object.fromEntries(this.points),
      strikes: Object.fromEntries(this.strikes),
    }
  }

  table(): string {
    const rows = [...this.points].toSorted(([a], [b]) => (a < b ? -1 : 1))
    const lines = rows.map(
      ([point, { passed, before, after }]) =>
        `${point.padEnd(28)}${String(passed).padStart(9)}${String(before).padStart(8)}${String(after).padStart(8)}`,
    )
    const strikes = [...this.strikes]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, count]) => `${name.padEnd(45)}${String(count).padStart(8)}`)
    const title = 'commit point                   passed  before   after'
    return [title, ...lines, '', 'what befell calls, and where', ...strikes].join('\n')
  }

  #of(point: string): { passed: number; before: number; after: number } {
    const known = this.points.get(point) ?? { passed: 0, before: 0, after: 0 }
    this.points.set(point, known)
    return known
  }
}
