/** How far a test run is, in one line. Knows nothing of Vitest or of terminals, so that it can be tested. */
export class Progress {
  readonly #files: readonly string[]
  readonly #weights: ReadonlyMap<string, number>
  readonly #start: number
  readonly #running = new Set<string>()
  readonly #done = new Set<string>()
  #tests = 0
  #failed = 0

  /** `durations`: how long files took in earlier runs, in ms. A file that is not there counts as the mean of the others. */
  constructor(files: readonly string[], durations: Readonly<Record<string, number>>, now: number) {
    this.#files = files
    const recorded = files.flatMap((file) => durations[file] ?? [])
    const mean = recorded.reduce((sum, ms) => sum + ms, 0) / recorded.length || 1
    // A file costs its imports too, however short its tests are.
    this.#weights = new Map(files.map((file) => [file, (durations[file] ?? mean) + 300]))
    this.#start = now
  }

  fileStarted(file: string): void {
    this.#running.add(file)
  }

  fileEnded(file: string): void {
    this.#running.delete(file)
    this.#done.add(file)
  }

  testEnded(hasFailed: boolean): void {
    this.#tests += 1
    if (hasFailed) this.#failed += 1
  }

  /** For example `212 of 590 files, 3,120 tests, 1 failed, about 2 min left`. */
  line(now: number): string {
    const left = this.#msLeft(now)
    return [
      `${this.#done.size} of ${this.#files.length} files`,
      `${this.#tests.toLocaleString('en')} tests`,
      ...(this.#failed > 0 ? [`${this.#failed} failed`] : []),
      ...(left === undefined ? [] : [`about ${durationText(left)} left`]),
    ].join(', ')
  }

  /** The files that have started and not ended, oldest first. */
  running(): readonly string[] {
    return [...this.#running]
  }

  #msLeft(now: number): number | undefined {
    const sum = (files: Iterable<string>): number =>
      [...files].reduce((total, file) => total + (this.#weights.get(file) ?? 0), 0)
    const done = sum(this.#done)
    const elapsed = now - this.#start
    // The first seconds say little about the pace.
    if (done === 0 || elapsed < 3000) return undefined
    return (elapsed * (sum(this.#files) - done)) / done
  }
}

/** `40 s`, `3 min`. */
export function durationText(ms: number): string {
  const seconds = Math.max(1, Math.round(ms / 1000))
  return seconds < 100 ? `${seconds} s` : `${Math.round(seconds / 60)} min`
}
