import type { CrashMoment } from '../../src/testing/simulation.ts'

/** A commit that joins several points counts for each of them, and under its own name. */
function namesOf(point: string): ReadonlySet<string> {
  return new Set([point, ...point.split('+')])
}

/** How often each commit point was passed, and how often a process died there. */
export class Coverage {
  readonly points: Map<string, { passed: number; before: number; after: number }> = new Map()

  pass(point: string): void {
    for (const name of namesOf(point)) this.#of(name).passed++
  }

  crash(point: string, moment: CrashMoment): void {
    for (const name of namesOf(point)) this.#of(name)[moment]++
  }

  /** Adds what another one counted. */
  add(other: ReturnType<Coverage['toJSON']>): void {
    for (const [point, { passed, before, after }] of Object.entries(other)) {
      const own = this.#of(point)
      own.passed += passed
      own.before += before
      own.after += after
    }
  }

  toJSON(): Record<string, { passed: number; before: number; after: number }> {
    return Object.fromEntries(this.points)
  }

  table(): string {
    const rows = [...this.points].toSorted(([a], [b]) => (a < b ? -1 : 1))
    const lines = rows.map(
      ([point, { passed, before, after }]) =>
        `${point.padEnd(28)}${String(passed).padStart(9)}${String(before).padStart(8)}${String(after).padStart(8)}`,
    )
    return ['commit point                   passed  before   after', ...lines].join('\n')
  }

  #of(point: string): { passed: number; before: number; after: number } {
    const known = this.points.get(point) ?? { passed: 0, before: 0, after: 0 }
    this.points.set(point, known)
    return known
  }
}
