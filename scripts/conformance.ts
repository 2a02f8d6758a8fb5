/**
 * `npm run conformance`: which requirement rows the tests prove.
 *
 *   --results FILE   read this Vitest JSON instead of running the tests that name rows
 *   --mutate ROW     break the code under ROW's tests, one small change at a time, and see which are noticed
 *     --max N        mutants to try (default 20)
 *     --seconds N    time for them (default 180)
 *     --only PATH    break only files whose path contains PATH
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { toMarkdown } from '../conformance/reporter/markdown.ts'
import { evaluate } from '../conformance/reporter/report.ts'
import { readResults } from '../conformance/reporter/results.ts'
import { loadSpecs } from '../conformance/reporter/rows.ts'
import { root, run } from './workspace.ts'

const { values } = parseArgs({
  options: {
    results: { type: 'string' },
    mutate: { type: 'string' },
    max: { type: 'string', default: '20' },
    seconds: { type: 'string', default: '180' },
    only: { type: 'string' },
  },
})

process.exitCode = values.mutate === undefined ? await report() : await mutate(values.mutate)

async function report(): Promise<number> {
  const results = values.results === undefined ? await runTests() : resolve(values.results)
  if (!existsSync(results)) {
    console.error(
      `There are no test results at ${results}. Run \`npm test\` first, or leave --results out.`,
    )
    return 1
  }
  const specs = loadSpecs()
  const { tests, brokenFiles } = readResults(results, root)
  const evaluation = evaluate(specs, tests)

  write('conformance/report.json', `${JSON.stringify(evaluation.report, null, 2)}\n`)
  write('docs/conformance.md', toMarkdown(specs, evaluation))

  let failures = evaluation.problems.length + brokenFiles.length
  for (const [spec, { rows, proved, failing, missing }] of Object.entries(
    evaluation.report.specs,
  )) {
    console.log(
      `${spec.padEnd(6)}${String(proved).padStart(4)} of ${String(rows).padStart(3)} rows proved, ` +
        `${failing.length} failing, ${missing.length} without a test`,
    )
    if (failing.length > 0) console.log(`      failing: ${failing.join(' ')}`)
    if (missing.length > 0 && missing.length < rows)
      console.log(`      without: ${missing.join(' ')}`)
    failures += failing.length
  }
  for (const problem of evaluation.problems) console.error(problem)
  for (const file of brokenFiles) console.error(`${file} did not run.`)
  return failures === 0 ? 0 : 1
}

/** Writes a file that is kept in the repository, and says so when that changes it. */
function write(path: string, content: string): void {
  const file = join(root, path)
  if (existsSync(file) && readFileSync(file, 'utf8') === content) return
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
  console.log(`${path} has changed; commit it with the tests.`)
}

/** Runs only the test files that name a row at all. */
async function runTests(): Promise<string> {
  const named = /['"`](?:UPP|UAP|UAICP|TP|SA)-V?\d+\b/
  const files = ['packages', 'conformance', 'examples', 'scripts', 'bench']
    .filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .filter((file) => /\.test(-d)?\.tsx?$/.test(file) && !/node_modules|dist/.test(file))
        .map((file) => join(folder, file)),
    )
    .filter((file) => named.test(readFileSync(join(root, file), 'utf8')))
  const output = join(root, '.tmp', 'conformance-results.json')
  mkdirSync(join(root, '.tmp'), { recursive: true })
  if (files.length === 0) {
    writeFileSync(output, JSON.stringify({ testResults: [] }))
    return output
  }
  await run('vitest', [
    'run',
    '--typecheck',
    '--reporter=dot',
    '--reporter=json',
    `--outputFile.json=${output}`,
    ...files,
  ])
  return output
}

async function mutate(row: string): Promise<number> {
  const { mutateRow } = await import('../conformance/mutate/mutate-row.ts')
  return mutateRow(row, {
    maxMutants: Number(values.max),
    maxSeconds: Number(values.seconds),
    only: values.only,
  })
}
