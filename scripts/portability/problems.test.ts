import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { bundle, platforms } from './bundle.ts'
import { findBundleProblems } from './problems.ts'

let folder: string
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'skein-bundle-'))))
afterEach(() => rmSync(folder, { recursive: true }))

function write(file: string, text: string): void {
  mkdirSync(dirname(join(folder, file)), { recursive: true })
  writeFileSync(join(folder, file), text)
}

async function problems(code: string, platform = platforms[0]!): Promise<string[]> {
  return findBundleProblems(await bundle(code, platform, folder), folder)
}

test('a built-in module in the bundle is reported with its importer, static or dynamic', async () => {
  write(
    'a.ts',
    `import { readFileSync } from 'node:fs'\nexport const a = () => readFileSync('x')\n`,
  )
  write('b.ts', `export const b = () => import('node:path')\n`)
  expect(await problems(`export * from './a.ts'`)).toEqual(['node:fs is imported by a.ts'])
  expect(await problems(`export * from './b.ts'`)).toEqual(['node:path is imported by b.ts'])
})

test('process.getBuiltinModule is the sanctioned way; a bare name is not', async () => {
  write('a.ts', `export const a = () => process.getBuiltinModule?.('node:crypto')\n`)
  write(
    'b.ts',
    `const name = 'node:crypto'\nexport const b = (load: (name: string) => void) => load(name)\n`,
  )
  expect(await problems(`export * from './a.ts'`)).toEqual([])
  expect(await problems(`export * from './b.ts'`)).toHaveLength(1)
})

test('conditions lead to the portable twin', async () => {
  const exports = {
    '.': { node: './node.ts', workerd: './worker.ts', default: './portable.ts' },
  }
  write('node_modules/@skein/x/package.json', JSON.stringify({ name: '@skein/x', exports }))
  write('node_modules/@skein/x/node.ts', `export { readFileSync as x } from 'node:fs'\n`)
  write('node_modules/@skein/x/worker.ts', `export const x = 'worker'\n`)
  write('node_modules/@skein/x/portable.ts', `export const x = 'portable'\n`)
  const texts = await Promise.all(
    platforms.map(
      async (platform) => (await bundle(`export { x } from '@skein/x'`, platform, folder)).text,
    ),
  )
  expect(texts[0]).toContain('portable')
  expect(texts[1]).toContain('worker')
})

test('third-party code and second copies are reported', async () => {
  write('node_modules/left/package.json', JSON.stringify({ name: 'left', main: 'index.js' }))
  write('node_modules/left/index.js', `export const left = 1\n`)
  expect(await problems(`export * from 'left'`)).toEqual(['node_modules/left/index.js is not ours'])

  write('packages/x/src/y.ts', `export const y = () => 'source'\n`)
  write('packages/x/dist/y.js', `export const y = () => 'built'\n`)
  expect(
    await problems(
      `export { y as a } from './packages/x/src/y.ts'\nexport { y as b } from './packages/x/dist/y.js'`,
    ),
  ).toHaveLength(1)

  const long = `export const text = () => '${'x'.repeat(300)}'\n`
  write('one.ts', long)
  write('two.ts', long)
  expect(
    await problems(`export { text as a } from './one.ts'\nexport { text as b } from './two.ts'`),
  ).toHaveLength(1)
})
