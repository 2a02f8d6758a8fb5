import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { TestModule, TestSpecification, Vitest } from 'vitest/node'
import { copyWorkspace } from '../../scripts/workspace-copy.ts'
import { root, run } from '../../scripts/workspace.ts'
import { rowsNamedBy } from '../reporter/rows.ts'
import { type Break, digestOf, locate } from './break.ts'
import { allBreaks } from './index.ts'

/** When a break was last seen to turn a test of its row red, by row and digest. */
export type Seen = Readonly<Record<string, Readonly<Record<string, string>>>>

const SEEN = join(root, 'conformance/breaks/seen.json')

export function readSeen(file: string = SEEN): Seen {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Seen) : {}
}

interface Wanted {
  readonly row: string
  readonly change: Break
}

interface RunOptions {
  /** Time after which no further break is planted. */
  readonly maxSeconds: number
  /** Writes down which breaks were seen to fail. */
  readonly writes: boolean
  /** Leaves out the breaks that were seen to fail at this commit, so that a run that was stopped goes on. */
  readonly resumes?: boolean
}

/**
 * Plants one break at a time in a copy of the repository and runs the tests of its row there. Returns the exit
 * code: 0 when every planted break turned a test of its own row red.
 */
export async function runBreaks(wanted: readonly Wanted[], options: RunOptions): Promise<number> {
  const copy = copyWorkspace()
  const survivors: string[] = []
  const deadline = performance.now() + options.maxSeconds * 1000
  let planted = 0
  const tests = new RowTests(copy.folder)
  const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim()
  const progress = join(root, '.tmp', 'breaks', `${commit}.json`)
  const done = options.resumes ? readSeen(progress) : {}
  try {
    for (const { row, change } of wanted) {
      if (performance.now() > deadline) break
      if (done[row]?.[digestOf(row, change)]) continue
      if (!(await tests.isGreen(row))) {
        survivors.push(`${row}: its tests do not pass even before the break`)
        continue
      }
      const { file, before, after } = locate(copy.folder, change)
      writeFileSync(join(copy.folder, file), after)
      const red = await tests.isRed(row, join(copy.folder, file))
      writeFileSync(join(copy.folder, file), before)
      tests.changed(join(copy.folder, file))
      planted++
      console.log(`${red ? 'noticed ' : 'SURVIVED'} ${row} ${change.clause} (${change.in})`)
      if (!red) survivors.push(`${row} ${change.clause}`)
      if (options.writes) note(SEEN, { row, change, red })
      if (options.resumes) note(progress, { row, change, red })
    }
  } finally {
    await tests.close()
    copy.remove()
  }
  console.log(
    `${planted - survivors.length} of ${planted} breaks noticed by the tests of their row`,
  )
  for (const survivor of survivors) console.error(`not noticed: ${survivor}`)
  if (performance.now() > deadline) console.log('the others were left for lack of time')
  return survivors.length === 0 ? 0 : 1
}

/** The tests of rows in one copy of the repository; Vitest is started once and told what has changed. */
class RowTests {
  readonly #folder: string
  #vitest: Promise<Vitest> | undefined
  readonly #green = new Map<string, boolean>()

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Whether the tests of the row pass as long as nothing is broken. */
  async isGreen(row: string): Promise<boolean> {
    const known = this.#green.get(row)
    if (known !== undefined) return known
    const isGreen = this.#filesNaming(row).length > 0 && !(await this.isRed(row))
    this.#green.set(row, isGreen)
    return isGreen
  }

  /** Whether a test that names the row fails now. A file that no longer loads counts as well. */
  async isRed(row: string, changed?: string): Promise<boolean> {
    const files = this.#filesNaming(row)
    const run = files.filter((file) => !/\.test-d\.tsx?$/.test(file))
    const types = files.filter((file) => /\.test-d\.tsx?$/.test(file))
    return (
      (run.length > 0 && (await this.#runs(row, run, changed))) ||
      (types.length > 0 && (await this.#typesAreRed(row, types)))
    )
  }

  changed(file: string): void {
    void this.#vitest?.then((vitest) => vitest.invalidateFile(file))
  }

  async close(): Promise<void> {
    await (await this.#vitest)?.close()
  }

  async #runs(row: string, files: readonly string[], changed?: string): Promise<boolean> {
    this.#vitest ??= this.#start()
    const vitest = await this.#vitest
    if (changed !== undefined) vitest.invalidateFile(changed)
    vitest.setGlobalTestNamePattern(new RegExp(`\\b${row}\\b`))
    const project = vitest.projects[0]!
    const specifications: TestSpecification[] = files.map((file) =>
      project.createSpecification(file),
    )
    const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications)
    return unhandledErrors.length > 0 || testModules.some((module) => isRed(module, row))
  }

  async #typesAreRed(row: string, files: readonly string[]): Promise<boolean> {
    const args = ['run', '--typecheck.only', '-t', row, '--reporter=dot']
    const names = files.map((file) => relative(this.#folder, file))
    const { code } = await run('vitest', [...args, ...names], { cwd: this.#folder, quiet: true })
    return code !== 0
  }

  async #start(): Promise<Vitest> {
    const { createVitest } = await import('vitest/node')
    process.chdir(this.#folder)
    return createVitest(
      'test',
      { watch: false, root: this.#folder, config: 'vitest.config.ts', reporters: [{}], run: true },
      {},
    )
  }

  #filesNaming(row: string): string[] {
    const named = new RegExp(`['"\`\\s,]${row}\\b`)
    return ['packages', 'conformance', 'scripts', 'examples'].flatMap((top) =>
      readdirSync(join(this.#folder, top), { recursive: true, encoding: 'utf8' })
        .map((file) => join(this.#folder, top, file))
        .filter(
          (file) => /\.test(-d)?\.tsx?$/.test(file) && !/node_modules|\.shared\.|breaks/.test(file),
        )
        .filter((file) => named.test(readFileSync(file, 'utf8'))),
    )
  }
}

function isRed(module: TestModule, row: string): boolean {
  const failed = [...module.children.allTests('failed')]
  if (failed.some(({ name }) => rowsNamedBy(name).includes(row))) return true
  // The file itself does not load any more.
  return module.state() === 'failed' && failed.length === 0
}

function note(file: string, { row, change, red }: Wanted & { readonly red: boolean }): void {
  const seen: Record<string, Record<string, string>> = structuredClone(readSeen(file))
  const own = { ...seen[row] }
  const digest = digestOf(row, change)
  if (red) own[digest] = new Date().toISOString().slice(0, 10)
  else delete own[digest]
  const current = new Set(allBreaks[row]!.map((one) => digestOf(row, one)))
  seen[row] = Object.fromEntries(Object.entries(own).filter(([one]) => current.has(one)))
  const sorted = Object.fromEntries(Object.entries(seen).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `${JSON.stringify(sorted, null, 1)}\n`)
}
