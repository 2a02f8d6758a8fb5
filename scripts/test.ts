/**
 * The test commands.
 *
 *   npm test                         the fast suite: needs nothing but `npm ci`; ends with what it proves
 *   npm test -- packages/ai          the part of it whose paths contain the argument; options go to Vitest
 *   npm run test:all                 the fast suite, then every group (scripts/test/groups.ts)
 *   npm run test:all -- browser sdks only these groups; further arguments go to Vitest
 *   npm run test:changed             what the changes since the last commit touch (`-- main`: since main)
 *   npm run test:deep                full counts of fuzz, seeds and kills (see deep-tests.ts)
 */
import { execFileSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { proveRows } from '../conformance/reporter/proved.ts'
import { readResults, resultsReporter, type TestRun } from '../conformance/reporter/results.ts'
import { runDeepTests } from './deep-tests.ts'
import { planOfChanges } from './test/changed.ts'
import { groups, type Group } from './test/groups.ts'
import { installGroup, megabytesOf } from './test/peers-of-group.ts'
import { countLine, countsOf, packageLines, skippedLines } from './test/summary.ts'
import { checkTypes } from './test/type-check.ts'
import { root, run } from './workspace.ts'

const [mode = '', ...rest] = process.argv.slice(2)
const start = performance.now()
/** One for each run of Vitest, in order. */
const runs: TestRun[] = []
/** What is wrong apart from tests: types that do not fit, rows that are not proved, a Vitest that did not end well. */
const problems: string[] = []

if (mode === '--deep') process.exitCode = await runDeepTests(rest)
else {
  if (mode === '--all') await runAll(rest)
  else if (mode === '--changed') await runChanged(rest)
  else await runFast(process.argv.slice(2))
  process.exitCode = end()
}

async function runFast(more: readonly string[]): Promise<void> {
  const isWhole = more.length === 0
  const results = await vitest('test', ['--project=fast', '--typecheck', ...more])
  if (results && isWhole) {
    const { total, problems: unproved } = proveRows(root, results)
    problems.push(...unproved)
    console.log(`\nconformance: ${total}`)
  }
  if (isWhole && mode !== '--all') {
    const minutes = groups.reduce((sum, group) => sum + group.minutes, 0)
    console.log(
      `npm run test:all adds ${groups.map(({ name }) => name).join(', ')}: about ${minutes} minutes more.`,
    )
  }
}

async function runAll(args: readonly string[]): Promise<void> {
  const wanted = groups.filter(({ name }) => args.includes(name))
  const more = args.filter((argument) => !groups.some(({ name }) => name === argument))
  if (wanted.length === 0) await runFast(more)
  for (const group of wanted.length === 0 ? groups : wanted) await runGroup(group, more)
}

async function runGroup(group: Group, more: readonly string[]): Promise<void> {
  console.log(`\n=== ${group.name}: ${group.what}`)
  if (group.name === 'shared' && !existsSync(join(sharedFolder(), 'conformance'))) {
    console.log(`skipped: the conformance data is not next to this repository`)
    return
  }
  const failure = await installGroup(group)
  if (failure !== undefined) {
    console.log(`skipped: npm could not install ${group.peers.join(', ')}:\n${failure}`)
    return
  }
  if (group.peers.length > 0)
    console.log(`packages of ${group.peers.join(', ')} in .cache/peers: ${megabytesOf(group)} MB`)
  const types = await checkTypes(group)
  if (types !== '') problems.push(`types of the group ${group.name}:\n${types}`)
  await vitest(group.name, [`--project=${group.name}`, '--passWithNoTests', ...more])
}

async function runChanged([base]: readonly string[]): Promise<void> {
  const { changed, tests, groups: touched } = planOfChanges(changedFiles(base))
  if (changed.length + tests.length === 0) console.log('No test reads what has changed.')
  const project = ['--project=fast', '--passWithNoTests']
  const done =
    changed.length > 0
      ? await vitest('changed', ['related', ...changed, ...project], 'related')
      : undefined
  const seen = new Set(Object.keys(done?.fileDurationsMs ?? {}))
  const more = tests.filter((file) => !seen.has(file))
  if (more.length > 0) await vitest('changed-more', [...project, ...more])
  if (touched.length > 0)
    console.log(`These changes also concern: npm run test:all -- ${touched.join(' ')}`)
}

function changedFiles(base = 'HEAD'): string[] {
  const git = (...args: string[]): string[] =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8' }).split('\0').filter(Boolean)
  const since = base === 'HEAD' ? base : git('merge-base', base, 'HEAD').join('').trim()
  return [
    ...git('diff', '--name-only', '-z', '--diff-filter=d', since),
    ...git('ls-files', '--others', '--exclude-standard', '-z'),
  ]
}

function sharedFolder(): string {
  return resolve(root, process.env['SKEIN_SHARED'] ?? join('..', 'shared'))
}

/** Runs Vitest once; what it printed are the failures in full. Its results are kept as `.tmp/<name>-results.json`. */
async function vitest(
  name: string,
  args: readonly string[],
  command: 'run' | 'related' = 'run',
): Promise<TestRun | undefined> {
  const results = join('.tmp', `${name}-results.json`)
  rmSync(join(root, results), { force: true })
  const begin = command === 'run' ? ['run', ...args] : [...args, '--run']
  const { code } = await run(
    'vitest',
    // A focused test would silently leave the others out.
    [...begin, '--allowOnly=false', '--reporter=./scripts/test/reporter.ts', resultsReporter],
    { env: { SKEIN_RESULTS: results } },
  )
  if (!existsSync(join(root, results))) {
    if (code !== 0) problems.push(`The tests of ${name} did not run.`)
    return undefined
  }
  const outcome = readResults(join(root, results))
  runs.push(outcome)
  const lines = packageLines(outcome)
  for (const line of [...(lines.length > 1 ? lines : []), ...skippedLines(outcome)])
    console.log(line)
  if (code !== 0 && countsOf([outcome]).failed === 0)
    problems.push(`Vitest ended with ${code} although no test of ${name} failed.`)
  return outcome
}

/** Prints what is wrong apart from tests and the counts. Returns the exit code. */
function end(): number {
  // On standard output like the counts, which come after it wherever both are read together.
  for (const problem of problems) console.log(`\nFAIL ${problem}`)
  const counts = countsOf(runs)
  const failed = counts.failed + problems.length
  console.log(`\n${((performance.now() - start) / 1000).toFixed(0)} s`)
  console.log(countLine({ ...counts, failed }))
  return failed === 0 ? 0 : 1
}
