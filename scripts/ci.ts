/**
 * What CI does after `npm ci`: the test command, then check, build, conformance on the same results,
 * and portability. Every step runs even when an earlier one failed; the last line counts.
 */
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { readResults } from '../conformance/reporter/results.ts'
import type { TestRun } from '../conformance/reporter/results.ts'
import { readJson, root, run } from './workspace.ts'

const results = join(root, '.tmp', 'test-results.json')
const steps: ReadonlyArray<readonly [name: string, npmArguments: readonly string[]]> = [
  ['test', ['test']],
  ['check', ['run', 'check']],
  ['build', ['run', 'build']],
  ['conformance', ['run', 'conformance', '--', '--results', results]],
  ['portability', ['run', 'portability']],
]

// Results of an earlier run must never be counted for this one.
rmSync(results, { force: true })

const outcomes: Array<{ name: string; ok: boolean; seconds: number }> = []
for (const [name, args] of steps) {
  console.log(`\n=== ${name}`)
  const start = performance.now()
  const { code } = await run('npm', args)
  outcomes.push({ name, ok: code === 0, seconds: (performance.now() - start) / 1000 })
}

const tests = existsSync(results) ? readResults(results, root) : undefined
if (tests) printPackageTimes(tests)
printSteps()

const count = (status: string): number =>
  tests?.tests.filter((test) => test.status === status).length ?? 0
const testFailures = count('failed') + (tests?.brokenFiles.length ?? 0)
const failedSteps = outcomes.filter(({ name, ok }) => !ok && !(name === 'test' && testFailures > 0))
const passed = count('passed') + outcomes.filter(({ name, ok }) => ok && name !== 'test').length
const failed = testFailures + failedSteps.length

console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1

/** Time in tests per package beside its budget; over budget is a warning, machines differ. */
function printPackageTimes({ tests: all, fileDurationsMs }: TestRun): void {
  const budgets = readJson(join(import.meta.dirname, 'time-budgets.json')) as Record<string, number>
  const seconds = new Map<string, number>()
  for (const [file, durationMs] of fileDurationsMs) {
    const owner = ownerOf(file)
    seconds.set(owner, (seconds.get(owner) ?? 0) + durationMs / 1000)
  }
  console.log('\n=== time in tests')
  for (const [owner, spent] of [...seconds].toSorted(([a], [b]) => a.localeCompare(b))) {
    const budget = budgets[owner]
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

function printSteps(): void {
  console.log('\n=== steps')
  for (const { name, ok, seconds } of outcomes) {
    console.log(`${ok ? 'ok  ' : 'FAIL'} ${name.padEnd(16)}${seconds.toFixed(1).padStart(8)} s`)
  }
  const total = outcomes.reduce((sum, { seconds }) => sum + seconds, 0)
  console.log(`     ${'together'.padEnd(16)}${total.toFixed(1).padStart(8)} s`)
}
