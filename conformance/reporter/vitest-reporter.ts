import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'
import type { Reporter, SerializedError, TestCase, TestModule } from 'vitest/node'
import { emptyTypeTests } from './empty-type-tests.ts'
import type { TestOutcome, TestRun } from './results.ts'

/**
 * Writes what the reports need to the file named by SKEIN_RESULTS. Unlike Vitest's own JSON it says
 * which tests passed without proving anything: those that are expected to fail, and type tests
 * without an assertion. (A run-time test without one fails: `requireAssertions` in the configuration.)
 */
export default class ResultsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], uncaught: readonly SerializedError[]): void {
    const output = process.env['SKEIN_RESULTS']
    if (output === undefined) return
    const run: TestRun = {
      tests: modules.flatMap((module) => outcomesOf(module)),
      brokenFiles: modules
        .filter((module) => module.state() === 'failed' && !hasFailingTest(module))
        .map(pathOf),
      uncaught: uncaught.map(describe),
      fileDurationsMs: Object.fromEntries(
        modules.map((module) => [pathOf(module), module.diagnostic().duration]),
      ),
    }
    mkdirSync(dirname(resolve(output)), { recursive: true })
    writeFileSync(output, `${JSON.stringify(run, null, 1)}\n`)
  }
}

function pathOf({ moduleId }: TestModule): string {
  return relative(process.cwd(), moduleId).replaceAll('\\', '/')
}

function describe(error: SerializedError): string {
  const test: unknown = error['VITEST_TEST_NAME']
  const path: unknown = error['VITEST_TEST_PATH']
  const where = [path, test].filter((part) => typeof part === 'string').join(': ')
  const what = error.stack ?? `${error.name ?? 'Error'}: ${error.message}`
  return `${where || 'no test file'}: ${what.split('\n').slice(0, 8).join('\n')}`
}

function hasFailingTest(module: TestModule): boolean {
  return [...module.children.allTests('failed')].length > 0
}

function outcomesOf(module: TestModule): TestOutcome[] {
  const file = pathOf(module)
  const isTypeTest = /\.test-d\.tsx?$/.test(file)
  const empty = isTypeTest ? emptyTypeTests(file, readFileSync(module.moduleId, 'utf8')) : []
  return [...module.children.allTests()].map((test) => ({
    // Tests of other files that run once more, e.g. on another store, prove no row a second time.
    title: test.fullName.startsWith('again on ') ? test.fullName : test.name,
    file,
    status: statusOf(test),
    durationMs: test.diagnostic()?.duration ?? 0,
    note: noteOf(test),
    provesNothing: test.options.fails
      ? 'is expected to fail'
      : empty.includes(test.name)
        ? 'asserts nothing'
        : undefined,
  }))
}

function noteOf(test: TestCase): string | undefined {
  const result = test.result()
  return result.state === 'skipped' ? result.note : undefined
}

function statusOf(test: TestCase): TestOutcome['status'] {
  const { state } = test.result()
  return state === 'passed' || state === 'failed' ? state : 'skipped'
}
