import type { TestRun } from '../../conformance/reporter/results.ts'

export interface Counts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
}

/** How the tests of some runs ended. A file that did not load and an error that no test caught are failures. */
export function countsOf(runs: readonly TestRun[]): Counts {
  const count = (status: string): number =>
    runs.reduce((sum, { tests }) => sum + tests.filter((test) => test.status === status).length, 0)
  const outside = runs.reduce((sum, run) => sum + run.brokenFiles.length + run.uncaught.length, 0)
  return { passed: count('passed'), failed: count('failed') + outside, skipped: count('skipped') }
}

/** The last line of the test commands. */
export function countLine({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`
}

/** One line for each package or folder: files, tests, time. */
export function packageLines({ tests, fileDurationsMs }: TestRun): string[] {
  const owners = new Map<string, { files: number; tests: number; ms: number }>()
  const rowOf = (file: string): { files: number; tests: number; ms: number } => {
    const owner = ownerOf(file)
    const row = owners.get(owner) ?? { files: 0, tests: 0, ms: 0 }
    owners.set(owner, row)
    return row
  }
  for (const [file, ms] of Object.entries(fileDurationsMs)) {
    const row = rowOf(file)
    row.files += 1
    row.ms += ms
  }
  for (const { file } of tests) rowOf(file).tests += 1
  return [...owners]
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(
      ([owner, row]) =>
        `${owner.padEnd(24)}${String(row.files).padStart(4)} files${String(row.tests).padStart(7)} tests` +
        `${(row.ms / 1000).toFixed(1).padStart(8)} s`,
    )
}

function ownerOf(file: string): string {
  const parts = file.split('/')
  return parts[0] === 'packages' ? `packages/${parts[1]}` : (parts[0] ?? file)
}

/** Why tests were skipped: the notes that they gave, each once with a count. */
export function skippedLines({ tests }: TestRun): string[] {
  const notes = new Map<string, number>()
  for (const { status, note, file } of tests)
    if (status === 'skipped') {
      const text = note ?? `no reason given, in ${file}`
      notes.set(text, (notes.get(text) ?? 0) + 1)
    }
  return [...notes].map(([note, count]) => `skipped ${count}: ${note.replace(/^skipped: /, '')}`)
}
