import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { toMarkdown } from './markdown.ts'
import { evaluate } from './report.ts'
import type { TestRun } from './results.ts'
import { loadSpecs, type Spec } from './rows.ts'

/** What a run of the whole suite proves, compared with the committed report. */
export interface Proved {
  /** One line per specification: how many of its rows are proved. */
  readonly lines: readonly string[]
  /** All rows together, e.g. `519 of 519 rows proved`. */
  readonly total: string
  /** What is wrong; empty when every row is proved and the report says so. */
  readonly problems: readonly string[]
}

const path = 'conformance/report.json'

/** Judges a run and writes the table of rows and tests to `.tmp/conformance.md`; `write` also updates the report. */
export function proveRows(
  root: string,
  { tests, brokenFiles }: TestRun,
  {
    write = false,
    specs = loadSpecs(),
  }: { readonly write?: boolean; readonly specs?: Spec[] } = {},
): Proved {
  const evaluation = evaluate(specs, tests)
  const table = join(root, '.tmp', 'conformance.md')
  mkdirSync(dirname(table), { recursive: true })
  writeFileSync(table, toMarkdown(specs, evaluation))

  const lines: string[] = []
  const problems = [...evaluation.problems]
  let rowCount = 0
  let provedCount = 0
  for (const [spec, { rows, proved, failing, missing }] of Object.entries(
    evaluation.report.specs,
  )) {
    rowCount += rows
    provedCount += proved
    lines.push(
      `${spec.padEnd(6)}${String(proved).padStart(4)} of ${String(rows).padStart(3)} rows proved, ` +
        `${failing.length} failing, ${missing.length} without a test`,
    )
    if (failing.length > 0) problems.push(`${spec}, failing: ${failing.join(' ')}`)
    if (missing.length > 0)
      problems.push(`${spec}, without a test that passed: ${missing.join(' ')}`)
  }
  problems.push(...brokenFiles.map((file) => `${file} did not run.`))
  problems.push(...keepReport(root, `${JSON.stringify(evaluation.report, null, 2)}\n`, write))
  return { lines, total: `${provedCount} of ${rowCount} rows proved`, problems }
}

/** Compares the committed report with what it has to be, or writes it. */
function keepReport(root: string, content: string, write: boolean): string[] {
  const file = join(root, path)
  if (existsSync(file) && readFileSync(file, 'utf8') === content) return []
  if (!write)
    return [
      `${path} is not what the tests prove. Run \`node scripts/conformance.ts --write\` and commit it.`,
    ]
  writeFileSync(file, content)
  return []
}
