import { expect, test } from 'vitest'
import type { TestOutcome, TestRun } from '../../conformance/reporter/results.ts'
import { countLine, countsOf, packageLines, skippedLines } from './summary.ts'

function outcome(file: string, status: TestOutcome['status'], note?: string): TestOutcome {
  return { title: 't', file, status, durationMs: 1, ...(note === undefined ? {} : { note }) }
}

const run: TestRun = {
  tests: [
    outcome('packages/ai/src/a.test.ts', 'passed'),
    outcome('packages/ai/test/b.test.ts', 'failed'),
    outcome('packages/threads/src/c.test.ts', 'passed'),
    outcome('conformance/d.test.ts', 'skipped', 'skipped: no server'),
    outcome('conformance/d.test.ts', 'skipped', 'skipped: no server'),
    outcome('conformance/e.test.ts', 'skipped'),
  ],
  brokenFiles: ['scripts/f.test.ts'],
  uncaught: ['no test file: Error'],
  fileDurationsMs: {
    'packages/ai/src/a.test.ts': 1000,
    'packages/ai/test/b.test.ts': 500,
    'packages/threads/src/c.test.ts': 40,
    'conformance/d.test.ts': 0,
  },
}

test('a file that did not load and an error that no test caught are failures', () => {
  expect(countLine(countsOf([run]))).toBe('2 passed, 3 failed, 3 skipped')
  expect(countLine(countsOf([run, run]))).toBe('4 passed, 6 failed, 6 skipped')
  expect(countLine(countsOf([]))).toBe('0 passed, 0 failed, 0 skipped')
})

test('one line per package with files, tests and time', () => {
  expect(packageLines(run).map((line) => line.replaceAll(/ +/g, ' '))).toEqual([
    'conformance 1 files 3 tests 0.0 s',
    'packages/ai 2 files 2 tests 1.5 s',
    'packages/threads 1 files 1 tests 0.0 s',
  ])
})

test('why tests were skipped, each reason once', () => {
  expect(skippedLines(run)).toEqual([
    'skipped 2: no server',
    'skipped 1: no reason given, in conformance/e.test.ts',
  ])
})
