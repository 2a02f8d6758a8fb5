/**
 * What CI does after `npm ci`: `npm test` as the README says it, other runtimes, then each group of `npm run test:all`, then check,
 * build, conformance on the results of the first, portability, and a few benches as ratios with wide bounds.
 * Every step runs even when an earlier one failed; together they may take 45 minutes, and more than 75 fails. The last
 * lines name the tests that failed and count.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { readResults } from '../conformance/reporter/results.ts'
import type { TestRun } from '../conformance/reporter/results.ts'
import { groups } from './test/groups.ts'
import { countsOf } from './test/summary.ts'
import { root, run } from './workspace.ts'

const warnMinutes = 45
const failMinutes = 75

const resultsOf = (name: string): string => join(root, '.tmp', `${name}-results.json`)
const testCommand = readmeTestCommand()

interface Step {
  readonly name: string
  readonly command: readonly [program: string, ...args: string[]]
  /** Where its tests are counted. */
  readonly results?: string
}

const steps: readonly Step[] = [
  { name: 'test', command: ['npm', ...testCommand], results: resultsOf('test') },
  // Before the groups, of which one uses the Node 22 that it installs.
  {
    name: 'runtimes',
    command: ['node', '--conditions=@skein/source', 'scripts/runtimes.ts'],
  },
  ...groups.map(({ name }) => ({
    name: `test:all ${name}`,
    command: ['npm', 'run', '--silent', 'test:all', '--', name] as const,
    results: resultsOf(name),
  })),
  { name: 'check', command: ['npm', 'run', 'check'] },
  { name: 'build', command: ['npm', 'run', 'build'] },
  {
    name: 'conformance',
    command: ['node', 'scripts/conformance.ts', '--results', resultsOf('test')],
  },
  { name: 'portability', command: ['node', 'scripts/portability.ts'] },
  { name: 'bench', command: ['npm', 'run', 'bench', '--', '--check'] },
]

// Results of an earlier run must never be counted for this one.
for (const { results } of steps) if (results !== undefined) rmSync(results, { force: true })

const outcomes: Array<{ step: Step; ok: boolean; seconds: number }> = []
for (const step of steps) {
  console.log(`\n=== ${step.name}`)
  const start = performance.now()
  const [program, ...args] = step.command
  const { code } = await run(program, args)
  outcomes.push({ step, ok: code === 0, seconds: (performance.now() - start) / 1000 })
}

const runs = steps.flatMap(({ results }) =>
  results !== undefined && existsSync(results) ? [readResults(results)] : [],
)
const isInTime = printSteps()
const tests = countsOf(runs)
// A step of tests that failed is counted by its tests, unless it failed without one.
const failedSteps = outcomes.filter(({ step, ok }) => {
  if (ok) return false
  const { results } = step
  if (results === undefined || !existsSync(results)) return true
  return countsOf([readResults(results)]).failed === 0
})
const passed = tests.passed + outcomes.filter(({ step, ok }) => ok && !step.results).length
const failed = tests.failed + failedSteps.length + (isInTime ? 0 : 1)

printFailures(runs)
for (const { step } of failedSteps) console.log(`the step ${step.name}`)
console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1

/** The arguments of npm in the command that the README gives for the tests. */
function readmeTestCommand(): string[] {
  const text = readFileSync(join(root, 'README.md'), 'utf8')
  const [, command] = /^npm ci && npm (test\b[^#\n]*)/m.exec(text) ?? []
  if (command === undefined) throw new Error('README.md has no line "npm ci && npm test".')
  return command.trim().split(/ +/)
}

/** Names what failed near the end of the output, where a log that was cut short still shows it. */
function printFailures(testRuns: readonly TestRun[]): void {
  const failures = testRuns.flatMap(({ tests: all, brokenFiles, uncaught }) => [
    ...all.flatMap(({ status, file, title }) => (status === 'failed' ? [`${file}: ${title}`] : [])),
    ...brokenFiles.map((file) => `${file} (the file itself)`),
    ...uncaught.map((error) => `not caught by any test: ${error}`),
  ])
  if (failures.length + failedSteps.length > 0) console.log('\n=== failed')
  for (const failure of failures.slice(0, 20)) console.log(failure)
  if (failures.length > 20) console.log(`… and ${failures.length - 20} more`)
}

/** The time of each step; false when together they took longer than CI may. */
function printSteps(): boolean {
  console.log('\n=== steps')
  for (const { step, ok, seconds } of outcomes)
    console.log(
      `${ok ? 'ok  ' : 'FAIL'} ${step.name.padEnd(24)}${seconds.toFixed(0).padStart(6)} s`,
    )
  const minutes = outcomes.reduce((sum, { seconds }) => sum + seconds, 0) / 60
  const isWithin = minutes <= failMinutes
  const note = minutes > warnMinutes ? `  WARNING: more than ${warnMinutes}` : ''
  console.log(
    `${isWithin ? 'ok  ' : 'FAIL'} together ${minutes.toFixed(1)} of at most ${failMinutes} minutes${note}`,
  )
  return isWithin
}
