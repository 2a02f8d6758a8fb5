import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { groupOf } from '../../scripts/test/groups.ts'
import { readJson, root } from '../../scripts/workspace.ts'
import { filesNamingRows } from '../reporter/named-rows.ts'
import { loadSpecs } from '../reporter/rows.ts'
import { plantMutants, type Mutant } from './mutants.ts'
import { RowRunner } from './row-runner.ts'
import { packageLines, type RowScore, type TriedMutant } from './scores.ts'

export interface MutateOptions {
  /** Rows (`UPP-012`) and specifications (`UPP`); none means all. */
  readonly names: readonly string[]
  readonly minutes: number
  /** Decides the order of rows and the sample of each. */
  readonly seed: string
  /** How many mutants of a row are tried. */
  readonly perRow: number
  /** Forgets what earlier runs of this commit tried. */
  readonly again: boolean
  readonly log?: (line: string) => void
  /** Where it notes what it tried; `.tmp/mutation.json` unless a test has its own. */
  readonly stateFile?: string
}

interface State {
  /** What was tried counts for this commit, seed and sample only. */
  readonly key: string
  readonly rows: Record<string, RowScore>
}

const defaultStateFile = join(root, '.tmp', 'mutation.json')

/**
 * Shows which faults the tests of each row would notice: finds the mutants in the functions that the row's
 * tests run, turns a seeded sample of them on one after the other, and runs the row's tests each time. What
 * was tried is noted after each row, so that the next run takes up the rest.
 */
export async function mutateRows(options: MutateOptions): Promise<number> {
  const { log = console.log, stateFile = defaultStateFile } = options
  const rows = chooseRows(options.names, options.seed)
  if (typeof rows === 'string') {
    console.error(rows)
    return 1
  }
  const state = readState(stateFile, options)
  const files = filesNamingRows(root)
  const deadline = performance.now() + options.minutes * 60_000
  const before = rows.filter((row) => state.rows[row] !== undefined).length
  log(
    `mutation: ${rows.length} rows, ${before} tried before; ${options.minutes} minutes, seed ${options.seed}`,
  )
  const runner = new RowRunner()
  try {
    for (const row of rows) {
      if (state.rows[row] !== undefined) continue
      if (performance.now() > deadline) break
      const tests = (files.get(row) ?? []).filter(
        (file) => groupOf(file) === undefined && !/\.test-d\.tsx?$/.test(file),
      )
      const score = await tryRow(runner, row, tests, options)
      state.rows[row] = score
      mkdirSync(dirname(stateFile), { recursive: true })
      writeFileSync(stateFile, `${JSON.stringify(state, null, 1)}\n`)
      log(rowLine(row, score))
      for (const { file, line, before: text, after, isNoticed } of score.mutants)
        if (!isNoticed) log(`  ${file}:${line}  ${short(text)} -> ${short(after) || '(removed)'}`)
    }
  } finally {
    await runner.close()
  }
  const tried = rows.flatMap((row) => state.rows[row] ?? [])
  for (const line of packageLines(tried)) log(line)
  log(`${tried.length} of ${rows.length} rows tried`)
  return 0
}

/** The rows that the names mean, in an order that the seed decides, one of each specification in turn. */
function chooseRows(names: readonly string[], seed: string): string[] | string {
  const specs = loadSpecs().map(({ rows }) => rows.map(({ id }) => id))
  const ids = new Set(specs.flat())
  const isMeant = (row: string, name: string) => row === name || row.replace(/-V?\d+$/, '') === name
  const unknown = names.find((name) => ![...ids].some((row) => isMeant(row, name)))
  if (unknown !== undefined)
    return `${unknown} is neither a row nor a specification; see conformance/rows.`
  const wanted = specs.map((rows) =>
    inSeededOrder(
      rows.filter((row) => names.length === 0 || names.some((name) => isMeant(row, name))),
      seed,
    ),
  )
  const longest = Math.max(...wanted.map((rows) => rows.length))
  return Array.from({ length: longest }, (_, index) =>
    wanted.flatMap((rows) => rows[index] ?? []),
  ).flat()
}

async function tryRow(
  runner: RowRunner,
  row: string,
  files: readonly string[],
  { seed, perRow }: MutateOptions,
): Promise<RowScore> {
  if (files.length === 0) return { problem: 'only type tests name it', reached: 0, mutants: [] }
  const plain = await runner.run({ row, files, limitMs: 120_000 })
  if (plain === 'stopped') return { problem: 'its tests do not end', reached: 0, mutants: [] }
  if (plain.isRed) return { problem: 'its tests fail without any change', reached: 0, mutants: [] }
  if (plain.passed === 0) return { problem: 'none of its tests ran', reached: 0, mutants: [] }
  const reached = new Set(plain.reached.flatMap(({ mutants: keys }) => keys))
  const keys = inSeededOrder([...reached], `${seed} ${row}`).slice(0, perRow)
  const mutants: TriedMutant[] = []
  for (const key of keys) {
    const { file, mutant } = mutantOf(key)
    const run = await runner.run({
      row,
      files: plain.reached
        .filter(({ mutants: keys }) => keys.includes(key))
        .map(({ testFile }) => relative(root, testFile)),
      mutant: key,
      limitMs: Math.max(10_000, 3 * plain.ms),
    })
    const isNoticed = run === 'stopped' || run.isRed
    const { kind, line, before, after } = mutant
    mutants.push({ file, line, kind, before, after, isNoticed })
  }
  return { reached: reached.size, mutants }
}

function mutantOf(key: string): { file: string; mutant: Mutant } {
  const [file = '', id] = key.split('#')
  const { mutants } = plantMutants(readFileSync(join(root, file), 'utf8'), file)
  return { file, mutant: mutants[Number(id) - 1]! }
}

function inSeededOrder(names: readonly string[], seed: string): string[] {
  const rank = (name: string) => createHash('sha256').update(`${seed} ${name}`).digest('hex')
  return names
    .map((name) => ({ name, rank: rank(name) }))
    .toSorted((a, b) => (a.rank < b.rank ? -1 : 1))
    .map(({ name }) => name)
}

function readState(stateFile: string, { seed, perRow, again }: MutateOptions): State {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
    cwd: root,
    encoding: 'utf8',
  }).trim()
  const key = `${commit} seed ${seed} sample ${perRow}`
  const state = existsSync(stateFile) ? (readJson(stateFile) as State) : undefined
  return state?.key === key && !again ? state : { key, rows: {} }
}

function rowLine(row: string, { problem, reached, mutants }: RowScore): string {
  if (problem !== undefined) return `${row}: ${problem}`
  const noticed = mutants.filter(({ isNoticed }) => isNoticed).length
  return `${row}: ${noticed} of ${mutants.length} noticed (${reached} reached)`
}

function short(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ')
  return line.length > 70 ? `${line.slice(0, 67)}...` : line
}
