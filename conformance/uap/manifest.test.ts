/** The manifest of the package: what it installs, and where its entries are. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const folder = join(import.meta.dirname, '../../packages/agents')
const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>
  readonly dependencies: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional?: boolean }>>
}

test('UAP-006 the types and the code of every entry are what is built from its source', () => {
  const entries = Object.entries(manifest.exports).filter(([, to]) => typeof to === 'object')
  expect(entries.map(([name]) => name)).toEqual([
    '.',
    './execution',
    './middleware',
    './checkpoint',
    './testing',
    './mcp',
  ])
  for (const [name, to] of entries) {
    const source = (to as Record<string, string>)['@skein/source']!
    expect(existsSync(join(folder, source)), name).toBe(true)
    const built = source.replace('./src/', './dist/').replace(/\.ts$/, '')
    // Node takes the first condition that it knows, and TypeScript needs its own before `default`.
    expect(Object.entries(to), name).toEqual([
      ['@skein/source', source],
      ['types', `${built}.d.ts`],
      ['default', `${built}.js`],
    ])
  }
})

test('UAP-005 whatever the package imports is installed with it, but for the SDK of MCP', () => {
  const isCode = (file: string): boolean => !/\.test(-d)?\.ts$/.test(file)
  const imported = globSync('src/**/*.ts', { cwd: folder })
    .filter(isCode)
    .flatMap((file) => {
      const text = readFileSync(join(folder, file), 'utf8')
      const found = text.matchAll(/^(?!import type|export type)(?:.* from|import) '([^.'][^']*)'/gm)
      return [...found].map(([, name]) => name!.split('/', name!.startsWith('@') ? 2 : 1).join('/'))
    })
    .filter((name) => !name.startsWith('node:'))
  const { dependencies, peerDependencies, peerDependenciesMeta } = manifest
  expect([...new Set(imported)].toSorted()).toEqual(['@skein/ai', '@skein/base'])
  expect(Object.keys(dependencies)).toEqual(['@skein/base'])
  // One copy of the model layer for the application and its agents: their classes are the same.
  expect(Object.keys(peerDependencies).toSorted()).toEqual([
    '@modelcontextprotocol/sdk',
    '@skein/ai',
  ])
  expect(peerDependenciesMeta).toEqual({ '@modelcontextprotocol/sdk': { optional: true } })
})
