import { readFileSync } from 'node:fs'

/** How one test ended. */
export interface TestOutcome {
  readonly title: string
  /** Path of the test file, relative to the repository. */
  readonly file: string
  readonly status: 'passed' | 'failed' | 'skipped'
  readonly durationMs: number
  /** Why a test that passed proves nothing, if so. */
  readonly provesNothing?: string
  /** Why a skipped test was skipped, if it says so. */
  readonly note?: string
}

/** A test run as the reports need it; `vitest-reporter.ts` writes it. */
export interface TestRun {
  readonly tests: readonly TestOutcome[]
  /** Files that failed without a failing test of their own: they did not load, or a hook threw. */
  readonly brokenFiles: readonly string[]
  /** Errors that no test caught, such as a rejection after its test had ended: where, what, and the stack's first lines. */
  readonly uncaught: readonly string[]
  /** Time per test file, imports not included. */
  readonly fileDurationsMs: Readonly<Record<string, number>>
}

/** What makes Vitest write its results to a file, next to what it prints. */
export const resultsReporter = '--reporter=./conformance/reporter/vitest-reporter.ts'

/** Reads what the reporter wrote. */
export function readResults(file: string): TestRun {
  return JSON.parse(readFileSync(file, 'utf8')) as TestRun
}
