import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { createVitest, type TestModule, type Vitest } from 'vitest/node'
import { root, run } from '../../scripts/workspace.ts'
import { rowsNamedBy } from '../reporter/rows.ts'

/** Asks for the tests of a row, after a file has changed; without a row, only says which file has changed. */
export interface RowQuestion {
  readonly row?: string
  readonly changed?: string
  /** Only tests in files whose path contains this. */
  readonly by?: string
}

/** Whether the tests of a row pass; `red` also if there are none; `hung` if they had to be killed. */
export type RowAnswer = 'green' | 'red' | 'hung'

// The process that `run-breaks.ts` starts in a copy of the repository. Vitest is started once and told what
// has changed, so that a row takes about a second.
let vitest: Promise<Vitest> | undefined
process.on('message', (question: RowQuestion) => void answer(question))

async function answer({ row, changed, by = '' }: RowQuestion): Promise<void> {
  if (changed !== undefined) (await vitest)?.invalidateFile(changed)
  if (row === undefined) return
  const files = filesNaming(row).filter((file) => file.includes(by))
  const isTypeTest = (file: string): boolean => /\.test-d\.tsx?$/.test(file)
  const code = files.filter((file) => !isTypeTest(file))
  const types = files.filter(isTypeTest)
  const isGreen =
    files.length > 0 &&
    (code.length === 0 || (await areGreen(row, code))) &&
    (types.length === 0 || (await areTypesGreen(row, types)))
  process.send!((isGreen ? 'green' : 'red') satisfies RowAnswer)
}

function filesNaming(row: string): string[] {
  const named = new RegExp(`['"\`\\s,]${row}\\b`)
  return ['packages', 'conformance', 'scripts', 'examples'].flatMap((top) =>
    readdirSync(join(root, top), { recursive: true, encoding: 'utf8' })
      .map((file) => join(root, top, file))
      .filter(
        (file) => /\.test(-d)?\.tsx?$/.test(file) && !/node_modules|\.shared\.|breaks/.test(file),
      )
      .filter((file) => named.test(readFileSync(file, 'utf8'))),
  )
}

async function areGreen(row: string, files: readonly string[]): Promise<boolean> {
  vitest ??= createVitest(
    'test',
    { watch: false, root, config: 'vitest.config.ts', reporters: [{}], run: true },
    {},
  )
  const runner = await vitest
  runner.setGlobalTestNamePattern(new RegExp(`\\b${row}\\b`))
  const project = runner.projects[0]!
  const { testModules, unhandledErrors } = await runner.runTestSpecifications(
    files.map((file) => project.createSpecification(file)),
  )
  // The modules of earlier runs are in the list as well, as they were then.
  const asked = testModules.filter(({ moduleId }) => files.includes(moduleId))
  return unhandledErrors.length === 0 && asked.every((module) => isGreen(module, row))
}

function isGreen(module: TestModule, row: string): boolean {
  const failed = [...module.children.allTests('failed')]
  if (failed.some(({ name }) => rowsNamedBy(name).includes(row))) return false
  // A file that does not load has no tests that could fail.
  return module.state() !== 'failed' || failed.length > 0
}

async function areTypesGreen(row: string, files: readonly string[]): Promise<boolean> {
  const args = ['run', '--typecheck.only', '-t', row, '--reporter=dot']
  const names = files.map((file) => relative(root, file))
  return (await run('vitest', [...args, ...names], { cwd: root, quiet: true })).code === 0
}
