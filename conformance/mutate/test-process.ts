/**
 * A process with one Vitest in it: it transforms every module once, mutants planted, and then runs the
 * tests of a row for each request it gets, in a fresh worker with another mutant on.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import type { Plugin } from 'vite'
import { createVitest } from 'vitest/node'
import { root } from '../../scripts/workspace.ts'
import workspaceConfig from '../../vitest.config.ts'
import { rowsNamedBy } from '../reporter/rows.ts'
import { endGroup } from './end-group.ts'
import { plantMutants } from './mutants.ts'
import type { Reached, RowRun, RunRequest } from './row-runner.ts'

const planting: Plugin = {
  name: 'skein-mutants',
  enforce: 'pre',
  transform(source, id) {
    const file = relative(root, id.split('?')[0] ?? id).replaceAll('\\', '/')
    if (!/^packages\/[^/]+\/src\/.*\.tsx?$/.test(file) || /\.(test|test-d|d)\.tsx?$/.test(file))
      return undefined
    return { code: plantMutants(source, file).code, map: null }
  },
}

// Rows are proved without the conformance data that may be next to the repository.
delete process.env['SKEIN_SHARED']

const vitest = await createVitest(
  'test',
  {
    root,
    config: false,
    watch: false,
    // Its keys know names of plugins, not what they do: it would serve mutants of an older mutants.ts.
    fsModuleCache: false,
    reporters: [{}],
    include: ['{packages,conformance,examples,scripts,bench}/**/*.test.{ts,tsx}'],
    expect: { requireAssertions: true },
    setupFiles: [join(import.meta.dirname, 'switch.ts')],
    testTimeout: 20_000,
    maxWorkers: 1,
  },
  {
    resolve: workspaceConfig.resolve ?? {},
    ssr: workspaceConfig.ssr ?? {},
    plugins: [planting],
  },
)

process.on('message', (request: RunRequest) => {
  runRow(request).then(
    (result) => process.send?.(result),
    (error: unknown) => {
      console.error(error)
      process.exit(1)
    },
  )
})
// The command that started this process has ended, so the workers and everything that the tests started end too.
process.on('disconnect', () => endGroup(process.pid))
process.send?.('ready')

async function runRow({ row, files, mutant, limitMs }: RunRequest): Promise<RowRun> {
  const reachedFolder = mkdtempSync(join(tmpdir(), 'skein-mutants-'))
  // Workers take over the environment of this process when they start.
  process.env['SKEIN_MUTANT_MS'] = String(limitMs)
  if (mutant === undefined) process.env['SKEIN_MUTANTS_REACHED'] = reachedFolder
  else delete process.env['SKEIN_MUTANTS_REACHED']
  process.env['SKEIN_MUTANT'] = mutant ?? ''
  const testNamePattern = new RegExp(`\\b${row}\\b`)
  const start = performance.now()
  const specifications = files.map((file) =>
    vitest.getRootProject().createSpecification(join(root, file), { testNamePattern }),
  )
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications)
  // Vitest keeps the modules of earlier runs, as they ended.
  const modules = testModules.filter(({ moduleId }) =>
    specifications.some((specification) => specification.moduleId === moduleId),
  )
  const tests = modules
    .flatMap((module) => [...module.children.allTests()])
    .filter(({ name }) => rowsNamedBy(name).includes(row))
  const failed = tests.filter((test) => test.result().state === 'failed').length
  const isBroken = modules.some(
    (module) =>
      module.errors().length > 0 ||
      (module.state() === 'failed' && [...module.children.allTests('failed')].length === 0),
  )
  const result: RowRun = {
    passed: tests.filter((test) => test.result().state === 'passed').length,
    isRed: failed > 0 || isBroken || unhandledErrors.length > 0,
    ms: performance.now() - start,
    reached: readdirSync(reachedFolder).map(
      (name) => JSON.parse(readFileSync(join(reachedFolder, name), 'utf8')) as Reached,
    ),
  }
  rmSync(reachedFolder, { recursive: true, force: true })
  return result
}
