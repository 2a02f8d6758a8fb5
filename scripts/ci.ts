/**
 * What CI does after `npm ci`: the test command as a stranger's clone runs it (nothing beside the
 * repository), the tests over the conformance data where that is present, then check, build, conformance
 * on the results of the first, portability, other runtimes, and a few benches as ratios with wide bounds. Every step runs
 * even when an earlier one failed; each has a share of the time in time-budgets.json, and more than the
 * total fails. The last lines name the tests that failed and count.
 */
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { readResults } from '../conformance/reporter/results.ts'
import type { TestRun } from '../conformance/reporter/results.ts'
import { readJson, root, run } from './workspace.ts'

const results = join(root, '.tmp', 'test-results.json')
const sharedResults = join(root, '.tmp', 'shared-results.json')
const budgets = readJson(join(import.meta.dirname, 'time-budgets.json')) as {
  readonly totalMinutes: number
  readonly steps: Readonly<Record<string, number>>
  readonly tests: Readonly<Record<string, number>>
}
const steps: ReadonlyArray<
  readonly [name: string, npmArguments: readonly string[], env?: NodeJS.ProcessEnv]
> = [
  ['test', ['test'], { SKEIN_SHARED: 'none' }],
  ['test with shared data', ['test', '--', '--shared']],
  ['check', ['run', 'check']],
  ['build', ['run', 'build']],
  ['conformance', ['run', 'conformance', '--', '--results', results]],
  // Another slice every day; all of them in `npm run test:deep`.
  ['breaks', ['run', 'conformance', '--', '--breaks', '--slice', today(), '--seconds', '240']],
  ['portability', ['run', 'portability']],
  ['runtimes', ['run', 'runtimes']],
  ['bench', ['run', 'bench', '--', '--check']],
]

function today(): string {
  return String(Math.floor(Date.now() / 86_400_000))
}

// Results of an earlier run must never be counted for this one.
rmSync(results, { force: true })
rmSync(sharedResults, { force: true })

const outcomes: Array<{ name: string; ok: boolean; seconds: number }> = []
for (const [name, args, env] of steps) {
  console.log(`\n=== ${name}`)
  const start = performance.now()
  const { code } = await run('npm', args, { env })
  outcomes.push({ name, ok: code === 0, seconds: (performance.now() - start) / 1000 })
}

const runs = [results, sharedResults].filter(existsSync).map(readResults)
if (runs[0]) printPackageTimes(runs[0])
const isInTime = printSteps()

const count = (status: string): number =>
  runs.reduce((sum, { tests }) => sum + tests.filter((test) => test.status === status).length, 0)
const outside = runs.reduce((sum, run) => sum + run.brokenFiles.length + run.uncaught.length, 0)
const testFailures = count('failed') + outside
const isTestStep = (name: string): boolean => name.startsWith('test')
const failedSteps = outcomes.filter(
  ({ name, ok }) => !ok && !(isTestStep(name) && testFailures > 0),
)
const passed = count('passed') + outcomes.filter(({ name, ok }) => ok && !isTestStep(name)).length
const failed = testFailures + failedSteps.length + (isInTime ? 0 : 1)

printFailures(runs)
console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1

/** Names what failed near the end of the output, where a log that was cut short still shows it. */
function printFailures(testRuns: readonly TestRun[]): void {
  const failures = testRuns.flatMap(({ tests, brokenFiles, uncaught }) => [
    ...tests.flatMap(({ status, file, title }) =>
      status === 'failed' ? [`${file}: ${title}`] : [],
    ),
    ...brokenFiles.map((file) => `${file} (the file itself)`),
    ...uncaught.map((error) => `not caught by any test: ${error}`),
  ])
  if (failures.length > 0) console.log('\n=== failed')
  for (const failure of failures.slice(0, 20)) console.log(failure)
  if (failures.length > 20) console.log(`… and ${failures.length - 20} more`)
}

/** Time in tests per package beside its budget; over budget is a warning, machines differ. */
function printPackageTimes({ tests: all, fileDurationsMs }: TestRun): void {
  const seconds = new Map<string, number>()
  for (const [file, durationMs] of Object.entries(fileDurationsMs)) {
    const owner = ownerOf(file)
    seconds.set(owner, (seconds.get(owner) ?? 0) + durationMs / 1000)
  }
  console.log('\n=== time in tests')
  for (const [owner, spent] of [...seconds].toSorted(([a], [b]) => a.localeCompare(b))) {
    const budget = budgets.tests[owner]
    const number = all.filter(({ file }) => ownerOf(file) === owner).length
    const mark = budget !== undefined && spent > budget ? '  OVER BUDGET' : ''
    console.log(
      `${owner.padEnd(20)}${String(number).padStart(6)} tests${spent.toFixed(1).padStart(8)} s` +
        ` of ${budget ?? '–'} s${mark}`,
    )
  }
}

function ownerOf(file: string): string {
  const parts = file.split('/')
  return parts[0] === 'packages' ? `packages/${parts[1]}` : (parts[0] ?? file)
}

/** Each step beside its share; false when together they took longer than CI may. */
function printSteps(): boolean {
  console.log('\n=== steps')
  for (const { name, ok, seconds } of outcomes) {
    const budget = budgets.steps[name] ?? 0
    const mark = seconds > budget ? '  OVER BUDGET' : ''
    console.log(
      `${ok ? 'ok  ' : 'FAIL'} ${name.padEnd(24)}${seconds.toFixed(1).padStart(8)} s of ${budget} s${mark}`,
    )
  }
  const total = outcomes.reduce((sum, { seconds }) => sum + seconds, 0)
  const limit = budgets.totalMinutes * 60
  const isWithin = total <= limit
  console.log(
    `${isWithin ? 'ok  ' : 'FAIL'} ${'together'.padEnd(24)}${total.toFixed(1).padStart(8)} s of ${limit} s`,
  )
  return isWithin
}
