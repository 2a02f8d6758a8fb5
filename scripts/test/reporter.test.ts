import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { TestCase, TestModule, TestSpecification, Vitest } from 'vitest/node'
import { root as repository, run } from '../workspace.ts'
import PeopleReporter from './reporter.ts'

// The reporter gets the events that Vitest would send, and what it writes is read.

let root: string
let output: string
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  root = mkdtempSync(join(tmpdir(), 'skein-reporter-'))
  output = ''
})
afterEach(() => {
  vi.useRealTimers()
  rmSync(root, { recursive: true, force: true })
})

function start(isTTY: boolean, files: readonly string[]): PeopleReporter {
  const outputStream = new Writable({
    write(chunk, _, done) {
      output += String(chunk)
      done()
    },
  })
  Object.assign(outputStream, { columns: 60 })
  const quiet = (): void => {}
  const logger = {
    outputStream,
    errorStream: outputStream,
    log: quiet,
    error: quiet,
    printNoTestFound: quiet,
    printUnhandledErrors: quiet,
  }
  const reporter = new PeopleReporter()
  reporter.isTTY = isTTY
  reporter.onInit({ config: { root }, logger } as unknown as Vitest)
  reporter.onTestRunStart(
    files.map((file) => ({ moduleId: join(root, file) }) as TestSpecification),
  )
  return reporter
}

const moduleOf = (file: string, duration: number) =>
  ({
    moduleId: join(root, file),
    state: () => 'passed',
    diagnostic: () => ({ duration }),
  }) as unknown as TestModule

const testThat = (state: string) => ({ result: () => ({ state }), task: {} }) as unknown as TestCase

test('on a terminal one line is drawn again, cut to its width, and wiped at the end', () => {
  const reporter = start(true, ['a.test.ts', 'b.test.ts'])
  reporter.onTestModuleStart(moduleOf('a.test.ts', 0))
  vi.advanceTimersByTime(300)
  expect(output).toBe('\r\u001b[K0 of 2 files, 0 tests · a.test.ts')
  reporter.onTestCaseResult(testThat('passed'))
  reporter.onTestModuleEnd(moduleOf('a.test.ts', 12))
  reporter.onTestModuleStart(moduleOf(`${'long/'.repeat(20)}b.test.ts`, 0))
  output = ''
  vi.advanceTimersByTime(300)
  expect(output).toMatch(/^\r\u001b\[K1 of 2 files, 1 tests · long/)
  expect(output.length).toBe('\r\u001b[K'.length + 59)
  output = ''
  vi.advanceTimersByTime(300)
  expect(output).toBe('') // nothing new
  reporter.onTestRunEnd([], [], 'passed')
  expect(output).toContain('\r\u001b[K')
  expect(output).not.toContain('\n')
  vi.advanceTimersByTime(300)
})

test('elsewhere a plain line every 20 seconds shows that the run is alive, and nothing is said of what passed', () => {
  const reporter = start(false, ['a.test.ts', 'b.test.ts'])
  reporter.onTestModuleStart(moduleOf('a.test.ts', 0))
  reporter.onTestCaseResult(testThat('passed'))
  reporter.onTestModuleEnd(moduleOf('a.test.ts', 12))
  vi.advanceTimersByTime(19_000)
  expect(output).toBe('')
  vi.advanceTimersByTime(1000)
  expect(output).toBe('1 of 2 files, 1 tests, about 20 s left\n')
  vi.advanceTimersByTime(20_000)
  expect(output.split('\n')).toHaveLength(3)
})

test('the times of files are kept for the estimate of the next run', () => {
  const reporter = start(false, ['a.test.ts'])
  reporter.onTestModuleEnd(moduleOf('a.test.ts', 1234.4))
  reporter.onTestRunEnd([], [], 'passed')
  const kept = readFileSync(join(root, '.tmp/test-durations.json'), 'utf8')
  expect(JSON.parse(kept)).toEqual({ 'a.test.ts': 1234 })
})

test('a real run prints failures in full, with what the failed test printed, and nothing of what passed', async () => {
  vi.useRealTimers()
  mkdirSync(join(repository, '.tmp'), { recursive: true })
  const folder = mkdtempSync(join(repository, '.tmp', 'reporter-'))
  const config = join(folder, 'vitest.config.ts')
  writeFileSync(
    config,
    `export default { root: import.meta.dirname, test: { include: ['*.test.ts'] } }`,
  )
  const begin = `import { expect, test } from 'vitest'\n`
  const good = `test('well done', () => { console.log('chatter'); expect(1).toBe(1) })`
  const bad = `test('the sum', () => { console.log('evidence'); expect({ sum: 4 }).toEqual({ sum: 5 }) })`
  writeFileSync(join(folder, 'good.test.ts'), begin + good)
  writeFileSync(join(folder, 'bad.test.ts'), begin + bad)
  const reporter = join(import.meta.dirname, 'reporter.ts')
  const { code, output } = await run(
    'vitest',
    ['run', '--config', config, '--reporter', reporter],
    {
      quiet: true,
    },
  )
  rmSync(folder, { recursive: true })
  expect(code).toBe(1)
  expect(output).toMatch(/bad\.test\.ts.*the sum/)
  expect(output).toMatch(/-\s+"sum": 5/)
  expect(output).toMatch(/bad\.test\.ts:\S*2/)
  expect(output).toContain('evidence')
  expect(output).not.toMatch(/good|well done|chatter/)
})
