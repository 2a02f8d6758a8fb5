/**
 * `node scripts/conformance.ts`: which requirement rows the tests prove, without the rest of `npm test`, which says it
 * too. Every run writes the table of rows and tests to `.tmp/conformance.md`.
 *
 *   --results FILE   read these results instead of running the tests that name rows
 *   --write          write conformance/report.json; without it a committed report that is not up to date fails
 *   --mutate [ROW|SPEC...]   change the code under the rows' tests, one small change at a time, and see which are
 *                            noticed; all rows without a name; takes up what an earlier run of this commit left
 *     --minutes N            begins no row after this time (default 10)
 *     --seed TEXT            which rows come first and which changes are tried
 *     --again                forget what was tried
 */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { proveRows } from '../conformance/reporter/proved.ts'
import { readResults, resultsReporter } from '../conformance/reporter/results.ts'
import { groupOf } from './test/groups.ts'
import { root, run } from './workspace.ts'

const { values, positionals } = parseArgs({
  options: {
    results: { type: 'string' },
    write: { type: 'boolean', default: false },
    mutate: { type: 'boolean', default: false },
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
    again: { type: 'boolean', default: false },
  },
  allowPositionals: true,
})

process.exitCode = values.mutate ? await mutate() : await report()

async function report(): Promise<number> {
  const results = values.results === undefined ? await runTests() : resolve(values.results)
  if (!existsSync(results)) {
    console.error(
      `There are no test results at ${results}. Run \`npm test\` first, or leave --results out.`,
    )
    return 1
  }
  const { lines, problems } = proveRows(root, readResults(results), { write: values.write })
  for (const line of lines) console.log(line)
  for (const problem of problems) console.error(problem)
  return problems.length === 0 ? 0 : 1
}

/** Runs only the test files that name a row at all. */
async function runTests(): Promise<string> {
  const named = /['"`](?:UPP|UAP|UAICP|TP|SA)-V?\d+\b/
  const files = ['packages', 'conformance', 'examples', 'scripts', 'bench']
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => /\.test(-d)?\.tsx?$/.test(file) && !/node_modules|dist/.test(file))
        .filter((file) => groupOf(file) === undefined)
        .map((file) => join(folder, file)),
    )
    .filter((file) => named.test(readFileSync(join(root, file), 'utf8')))
  const output = join(root, '.tmp', 'conformance-results.json')
  rmSync(output, { force: true })
  const reporters = ['--reporter=dot', resultsReporter]
  await run('vitest', ['run', '--project=fast', '--typecheck', ...reporters, ...files], {
    env: { SKEIN_RESULTS: output },
  })
  return output
}

async function mutate(): Promise<number> {
  const { mutateRows } = await import('../conformance/mutate/mutate-rows.ts')
  return mutateRows({
    names: positionals,
    minutes: Number(values.minutes),
    seed: values.seed,
    perRow: 10,
    again: values.again,
  })
}
