import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { copyWorkspace } from '../../scripts/workspace-copy.ts'
import type { WorkspaceCopy } from '../../scripts/workspace-copy.ts'
import { readJson, run } from '../../scripts/workspace.ts'
import { readResults, resultsReporter } from '../reporter/results.ts'
import type { TestOutcome } from '../reporter/results.ts'
import { loadSpecs, rowsNamedBy } from '../reporter/rows.ts'
import { mutationsOf } from './mutations.ts'
import type { Mutation } from './mutations.ts'

export interface MutateOptions {
  readonly maxMutants: number
  readonly maxSeconds: number
  /** Mutate only files whose path contains this. */
  readonly only?: string | undefined
}

interface Mutant extends Mutation {
  readonly file: string
}

/**
 * Shows whether a row's tests would notice a fault: finds the tests that name it and the lines they run,
 * breaks those lines one at a time in a copy of the repository, and runs the tests on each broken copy.
 * Returns the exit code: 0 when at least one mutant was noticed.
 */
export async function mutateRow(row: string, options: MutateOptions): Promise<number> {
  if (!loadSpecs().some(({ rows }) => rows.some(({ id }) => id === row))) {
    console.error(`${row} is no row; see conformance/rows.`)
    return 1
  }
  const copy = copyWorkspace()
  try {
    const files = testFilesNaming(copy.folder, row)
    if (files.length === 0) {
      console.error(
        `No test names ${row}, or only type tests do: they run no code that could be broken.`,
      )
      return 1
    }
    // What importing alone runs: no test has a name like this.
    await runRow(copy, files, 'no such test', coverageInto('imported'))
    const tests = await runRow(copy, files, row, coverageInto('tested'))
    if (tests === 'broken' || tests.length === 0) {
      console.error(`The tests of ${row} do not run.`)
      return 1
    }
    for (const { title, file, status } of tests) console.log(`${status}  ${file}: ${title}`)
    if (tests.some(({ status }) => status === 'failed')) {
      console.error(`${row} is failing already; mend it first.`)
      return 1
    }
    const mutants = chooseMutants(coveredLines(copy.folder), copy.folder, options)
    return await tryMutants(copy, { row, files, mutants, maxSeconds: options.maxSeconds })
  } finally {
    copy.remove()
  }
}

function coverageInto(name: string): string[] {
  return [
    '--coverage.enabled',
    '--coverage.provider=v8',
    '--coverage.reporter=json',
    `--coverage.reportsDirectory=.tmp/coverage-${name}`,
    '--coverage.include=packages/*/src/**/*.ts',
  ]
}

function testFilesNaming(folder: string, row: string): string[] {
  const named = new RegExp(`['"\`\\s,]${row}\\b`)
  return ['packages', 'conformance'].flatMap((top) =>
    readdirSync(join(folder, top), { recursive: true, encoding: 'utf8' })
      .map((file) => join(top, file))
      .filter((file) => /\.test\.tsx?$/.test(file) && !file.includes('node_modules'))
      .filter((file) => named.test(readFileSync(join(folder, file), 'utf8'))),
  )
}

/** How the row's own tests end; `broken` when a file does not run or time is up. */
async function runRow(
  copy: WorkspaceCopy,
  files: readonly string[],
  row: string,
  extra: readonly string[] = [],
): Promise<TestOutcome[] | 'broken'> {
  const results = join(copy.folder, '.tmp', 'row-results.json')
  rmSync(results, { force: true })
  const { code } = await run(
    'vitest',
    ['run', '-t', row, '--reporter=dot', resultsReporter, ...extra, ...files],
    { cwd: copy.folder, env: { SKEIN_RESULTS: results }, quiet: true, timeoutMs: 60_000 },
  )
  if (code === -1 || !existsSync(results)) return 'broken'
  const { tests, brokenFiles } = readResults(results)
  if (brokenFiles.length > 0) return 'broken'
  return tests.filter(
    ({ title, status }) => status !== 'skipped' && rowsNamedBy(title).includes(row),
  )
}

interface CoverageFile {
  readonly path: string
  readonly statementMap: Readonly<
    Record<string, { readonly start: { line: number }; readonly end: { line: number } }>
  >
  readonly s: Readonly<Record<string, number>>
}

/**
 * The lines that ran, by file, of the files where the tests ran more than the import had run already:
 * constants at the top of those files count, files that were only loaded do not.
 */
function coveredLines(folder: string): Map<string, Set<number>> {
  const imported = readCoverage(folder, 'imported')
  const covered = new Map<string, Set<number>>()
  for (const [file, { statementMap, s: counts }] of readCoverage(folder, 'tested')) {
    const before = imported.get(file)?.s ?? {}
    if (!Object.entries(counts).some(([id, count]) => count > (before[id] ?? 0))) continue
    const lines = new Set<number>()
    for (const [id, { start, end }] of Object.entries(statementMap)) {
      if ((counts[id] ?? 0) === 0) continue
      // A long statement is mostly the body of something; its parts are statements of their own.
      for (let line = start.line; line <= Math.min(end.line, start.line + 3); line++)
        lines.add(line)
    }
    covered.set(file, lines)
  }
  return covered
}

function readCoverage(folder: string, name: string): Map<string, CoverageFile> {
  const file = join(folder, '.tmp', `coverage-${name}`, 'coverage-final.json')
  if (!existsSync(file)) return new Map()
  const coverage = readJson(file) as Record<string, CoverageFile>
  return new Map(Object.values(coverage).map((entry) => [relative(folder, entry.path), entry]))
}

/** Spreads the allowance over the files and, in each, evenly from top to bottom. */
function chooseMutants(
  covered: ReadonlyMap<string, ReadonlySet<number>>,
  folder: string,
  { maxMutants, only }: MutateOptions,
): Mutant[] {
  const byFile = [...covered]
    .filter(([file]) => only === undefined || file.includes(only))
    .map(([file, lines]) =>
      mutationsOf(readFileSync(join(folder, file), 'utf8'), lines).map((mutation) => ({
        ...mutation,
        file,
      })),
    )
    .filter((mutants) => mutants.length > 0)
  for (const mutants of byFile)
    console.log(`${mutants[0]?.file}: ${mutants.length} possible mutants`)
  const total = byFile.reduce((sum, mutants) => sum + mutants.length, 0)
  return byFile
    .flatMap((mutants) => {
      const share = Math.max(1, Math.floor((maxMutants * mutants.length) / total))
      const step = Math.max(1, mutants.length / share)
      return Array.from(
        { length: Math.min(share, mutants.length) },
        (_, index) => mutants[Math.floor(index * step)]!,
      )
    })
    .slice(0, maxMutants)
}

async function tryMutants(
  copy: WorkspaceCopy,
  {
    row,
    files,
    mutants,
    maxSeconds,
  }: { row: string; files: readonly string[]; mutants: readonly Mutant[]; maxSeconds: number },
): Promise<number> {
  const deadline = performance.now() + maxSeconds * 1000
  let noticed = 0
  let tried = 0
  for (const { file, line, before, after, source } of mutants) {
    if (performance.now() > deadline) break
    const path = join(copy.folder, file)
    const original = readFileSync(path, 'utf8')
    writeFileSync(path, source)
    const tests = await runRow(copy, files, row)
    writeFileSync(path, original)
    const red = tests === 'broken' || tests.some(({ status }) => status === 'failed')
    tried++
    if (red) noticed++
    console.log(`${red ? 'noticed ' : 'SURVIVED'} ${file}:${line}\n  - ${before}\n  + ${after}`)
  }
  console.log(`${row}: ${noticed} of ${tried} mutants noticed (${mutants.length} chosen)`)
  return noticed > 0 ? 0 : 1
}
