import { readFileSync } from 'node:fs'
import { relative } from 'node:path'

/** How one test ended. */
export interface TestOutcome {
  readonly title: string
  /** Path of the test file, relative to the repository. */
  readonly file: string
  readonly status: 'passed' | 'failed' | 'skipped'
  readonly durationMs: number
}

/** A test run as the reports need it. */
export interface TestRun {
  readonly tests: readonly TestOutcome[]
  /** Files that failed without a failing test of their own: they did not load, or a hook threw. */
  readonly brokenFiles: readonly string[]
  /** Wall time per test file, imports not included. */
  readonly fileDurationsMs: ReadonlyMap<string, number>
}

interface VitestJson {
  readonly testResults: ReadonlyArray<{
    readonly name: string
    readonly status: string
    readonly startTime: number
    readonly endTime: number
    readonly assertionResults: ReadonlyArray<{
      readonly title: string
      readonly status: string
      readonly duration?: number
    }>
  }>
}

/** Reads what Vitest's JSON reporter wrote. */
export function readResults(file: string, root: string): TestRun {
  const { testResults } = JSON.parse(readFileSync(file, 'utf8')) as VitestJson
  const tests: TestOutcome[] = []
  const brokenFiles: string[] = []
  const fileDurationsMs = new Map<string, number>()
  for (const { name, status, startTime, endTime, assertionResults } of testResults) {
    const path = relative(root, name).replaceAll('\\', '/')
    const own = assertionResults.map((result) => ({
      title: result.title,
      file: path,
      status: outcome(result.status),
      durationMs: result.duration ?? 0,
    }))
    tests.push(...own)
    fileDurationsMs.set(path, Math.max(0, endTime - startTime))
    if (status === 'failed' && !own.some((test) => test.status === 'failed')) brokenFiles.push(path)
  }
  return { tests, brokenFiles, fileDurationsMs }
}

function outcome(status: string): TestOutcome['status'] {
  if (status === 'passed' || status === 'failed') return status
  return 'skipped'
}
