/**
 * `npm run conformance`: which requirement rows the tests prove.
 *
 *   --results FILE   read these results instead of running the tests that name rows
 *   --write          write the report; without it a committed report that is not up to date fails
 *   --mutate ROW     break the code under ROW's tests, one small change at a time, and see which are noticed
 *     --max N        mutants to try (default 20)
 *     --seconds N    time for them (default 180)
 *     --only PATH    break only files whose path contains PATH
 *   --breaks [ROW…]  plant the breaks of these rows, or of all, one at a time; a test of the row must fail
 *     --slice N      only every 20th break, beginning at a place that follows from N
 *     --write        write down when each was seen to fail (conformance/breaks/seen.json)
 *     --unseen       only breaks that were not yet seen to fail
 *     --resume       leave out what was seen to fail at this commit already
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { allBreaks, breaksOf } from '../conformance/breaks/index.ts'
import { digestOf } from '../conformance/breaks/break.ts'
import { readSeen, runBreaks } from '../conformance/breaks/run-breaks.ts'
import { type BrokenClause, toMarkdown } from '../conformance/reporter/markdown.ts'
import { evaluate } from '../conformance/reporter/report.ts'
import { readResults, resultsReporter } from '../conformance/reporter/results.ts'
import { loadSpecs } from '../conformance/reporter/rows.ts'
import { root, run } from './workspace.ts'

const { values, positionals } = parseArgs({
  options: {
    results: { type: 'string' },
    write: { type: 'boolean', default: false },
    mutate: { type: 'string' },
    max: { type: 'string', default: '20' },
    seconds: { type: 'string' },
    only: { type: 'string' },
    breaks: { type: 'boolean', default: false },
    slice: { type: 'string' },
    unseen: { type: 'boolean', default: false },
    resume: { type: 'boolean', default: false },
  },
  allowPositionals: true,
})

/** How many slices there are: CI plants one, so that a few weeks of commits plant them all. */
const SLICES = 20

process.exitCode = values.breaks
  ? await breaks(positionals)
  : values.mutate === undefined
    ? await report()
    : await mutate(values.mutate)

async function report(): Promise<number> {
  const results = values.results === undefined ? await runTests() : resolve(values.results)
  if (!existsSync(results)) {
    console.error(
      `There are no test results at ${results}. Run \`npm test\` first, or leave --results out.`,
    )
    return 1
  }
  const specs = loadSpecs()
  const { tests, brokenFiles } = readResults(results)
  const evaluation = evaluate(specs, tests)

  const stale = [
    keep('conformance/report.json', `${JSON.stringify(evaluation.report, null, 2)}\n`),
    keep('docs/conformance.md', toMarkdown(specs, evaluation, brokenClauses())),
  ].filter((problem) => problem !== undefined)

  let failures = evaluation.problems.length + brokenFiles.length + stale.length
  for (const [spec, { rows, proved, failing, missing }] of Object.entries(
    evaluation.report.specs,
  )) {
    console.log(
      `${spec.padEnd(6)}${String(proved).padStart(4)} of ${String(rows).padStart(3)} rows proved, ` +
        `${failing.length} failing, ${missing.length} without a test`,
    )
    if (failing.length > 0) console.log(`      failing: ${failing.join(' ')}`)
    if (missing.length > 0) console.log(`      without: ${missing.join(' ')}`)
    failures += failing.length + missing.length
  }
  for (const problem of [...evaluation.problems, ...stale]) console.error(problem)
  for (const file of brokenFiles) console.error(`${file} did not run.`)
  return failures === 0 ? 0 : 1
}

/** The clauses of each row whose violation a test of the row was seen to notice, and when. */
function brokenClauses(): Map<string, BrokenClause[]> {
  const seen = readSeen()
  return new Map(
    Object.entries(allBreaks).map(([row, list]) => [
      row,
      list.flatMap((change) => {
        const at = seen[row]?.[digestOf(row, change)]
        return at === undefined ? [] : [{ clause: change.clause, at }]
      }),
    ]),
  )
}

/** Compares a file that is kept in the repository with what it has to be, or writes it. */
function keep(path: string, content: string): string | undefined {
  const file = join(root, path)
  if (existsSync(file) && readFileSync(file, 'utf8') === content) return undefined
  if (!values.write)
    return `${path} is not what the tests prove. Run \`npm run conformance -- --write\` and commit it.`
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
  console.log(`${path} has changed; commit it with the tests.`)
  return undefined
}

/** Runs only the test files that name a row at all. */
async function runTests(): Promise<string> {
  const named = /['"`](?:UPP|UAP|UAICP|TP|SA)-V?\d+\b/
  const files = ['packages', 'conformance', 'examples', 'scripts', 'bench']
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter(
          (file) => /\.test(-d)?\.tsx?$/.test(file) && !/node_modules|dist|\.shared\./.test(file),
        )
        .map((file) => join(folder, file)),
    )
    .filter((file) => named.test(readFileSync(join(root, file), 'utf8')))
  const output = join(root, '.tmp', 'conformance-results.json')
  rmSync(output, { force: true })
  await run('vitest', ['run', '--typecheck', '--reporter=dot', resultsReporter, ...files], {
    env: { SKEIN_RESULTS: output, SKEIN_SHARED: undefined },
  })
  return output
}

async function mutate(row: string): Promise<number> {
  const { mutateRow } = await import('../conformance/mutate/mutate-row.ts')
  return mutateRow(row, {
    maxMutants: Number(values.max),
    maxSeconds: Number(values.seconds ?? 180),
    only: values.only,
  })
}

async function breaks(rows: readonly string[]): Promise<number> {
  const seen = readSeen()
  const isWanted = (index: number): boolean =>
    values.slice === undefined || index % SLICES === Number(values.slice) % SLICES
  const wanted = breaksOf(rows)
    .filter((_, index) => isWanted(index))
    .filter(({ row, change }) => !values.unseen || !seen[row]?.[digestOf(row, change)])
  const maxSeconds = Number(values.seconds ?? Infinity)
  return runBreaks(wanted, { maxSeconds, writes: values.write, resumes: values.resume })
}
