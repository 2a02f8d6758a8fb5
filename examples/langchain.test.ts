import { cpSync, globSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { findExamples, runExample } from '../scripts/examples/example.ts'
import { peersOf } from '../scripts/peers.ts'
import { root, run } from '../scripts/workspace.ts'

/** The programs with `langchain`, which is no package of the workspace. */
const programs = findExamples(join(import.meta.dirname, 'langchain'))
const peers = peersOf('packages/governance/test/peers')

test('there are programs, and each says what it prints', () => {
  expect(programs.length).toBeGreaterThanOrEqual(2)
  expect(programs.filter(({ expected }) => !expected)).toEqual([])
})

// Installed by `npm test`; where npm could not, it says so and these are skipped.
describe.skipIf(!peers.isInstalled)('with LangChain', { timeout: 60_000 }, () => {
  // An import resolves from the file it stands in, so the programs go to their packages.
  const copies = join(peers.folder, 'examples')
  beforeAll(() => {
    for (const file of globSync(['langchain/*.ts', 'wire-*.ts'], { cwd: import.meta.dirname }))
      cpSync(join(import.meta.dirname, file), join(copies, file))
  })

  test.for(programs)('$name prints what it promises', async (program) => {
    const file = join(copies, 'langchain', basename(program.file))
    expect(await runExample({ ...program, file })).toEqual({ code: 0, output: program.expected })
  })

  test('they compile with the types of LangChain', async () => {
    const config = join(copies, 'tsconfig.json')
    const compilerOptions = {
      noEmit: true,
      allowImportingTsExtensions: true,
      typeRoots: [join(root, 'node_modules', '@types')],
    }
    const base = join(root, 'tsconfig.base.json')
    const files = programs.map(({ file }) => join('langchain', basename(file)))
    writeFileSync(config, JSON.stringify({ extends: base, compilerOptions, files }))
    const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
    const compiled = await run('node', [tsc, '-p', config], { quiet: true, timeoutMs: 50_000 })
    expect(compiled).toMatchObject({ code: 0, output: '' })
  })
})
