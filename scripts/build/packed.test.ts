import { expect, test } from 'vitest'
import { findUnexpectedFiles } from './packed.ts'

const usual = ['package.json', 'README.md', 'LICENSE', 'dist/index.js', 'src/index.ts']

test('the usual files are packed', () => {
  expect(findUnexpectedFiles('@skein/ai', usual)).toEqual([])
  const maps = ['dist/chunks/llm-Ab_1.js.map', 'dist/wires/a/b.d.ts', 'bin/skein.js']
  expect(findUnexpectedFiles('skein', [...usual, ...maps])).toEqual([])
})

test.each([
  '.env',
  'dist/.env',
  'src/.env.ts/key.pem',
  'src/llm.test.ts',
  'src/types.test-d.ts',
  'src/__fixtures__/a.ts',
  'dist/index.js.bak',
  'dist/tsconfig.tsbuildinfo',
  'test/peers/package.json',
  'node_modules/x/index.js',
  'notes.md',
  'dist/page/index.html',
  'templates/chat/package.json',
])('%s is not, unless its package is known to have it', (file) => {
  expect(findUnexpectedFiles('@skein/ai', [...usual, file])).toEqual([
    `@skein/ai: ${file} is packed, and scripts/build/packed.ts does not allow it.`,
  ])
})

test('a page, a template and its test are allowed where they belong', () => {
  const served = ['dist/page/assets/a-1.css', 'dist/docs/guides/tools.md', 'dist/docs/llms.txt']
  expect(findUnexpectedFiles('@skein/studio', [...usual, ...served])).toEqual([])
  const templates = ['templates/chat/_gitignore', 'templates/chat/test/a.test.ts']
  expect(findUnexpectedFiles('create-skein', [...usual, ...templates])).toEqual([])
})

test('a package without licence or manual is not published', () => {
  expect(findUnexpectedFiles('@skein/ai', ['package.json', 'dist/index.js'])).toEqual([
    '@skein/ai: README.md is not packed.',
    '@skein/ai: LICENSE is not packed.',
  ])
})
