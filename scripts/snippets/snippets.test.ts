import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { publicNames } from '../source/public-names.ts'
import { root } from '../workspace.ts'
import { linksOf } from '../docs/markdown.ts'
import { findPages, isPasted } from './pages.ts'
import {
  countUnnamedFences,
  fencesWithoutImports,
  findStaleSnippets,
  programOf,
  updateSnippets,
} from './snippets.ts'
import { importsFor } from './imports.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-snippets-'))
afterAll(() => rmSync(folder, { recursive: true }))
writeFileSync(join(folder, 'a.ts'), 'const a = 1\n// #region two\nconst b = 2\n// #endregion two\n')

const fence = (reference: string, text: string): string =>
  `Text\n\n\`\`\`ts file=${reference}\n${text}\`\`\`\n`

test('a fence that equals its file or region is accepted', () => {
  expect(findStaleSnippets(fence('a.ts#two', 'const b = 2\n'), folder)).toEqual([])
  expect(
    findStaleSnippets(fence('a.ts', readFileSync(join(folder, 'a.ts'), 'utf8')), folder),
  ).toEqual([])
})

test('a region inside a region can be shown alone, and its marks are not shown', () => {
  writeFileSync(
    join(folder, 'b.ts'),
    '// #region all\nconst a = 1\n// #region part\nconst b = 2\n// #endregion part\n// #endregion all\n',
  )
  const shown = updateSnippets(fence('b.ts#all', '') + fence('b.ts#part', ''), folder)
  expect(shown).toBe(
    fence('b.ts#all', 'const a = 1\nconst b = 2\n') + fence('b.ts#part', 'const b = 2\n'),
  )
})

test('a fence that differs, or names nothing, is reported', () => {
  expect(findStaleSnippets(fence('a.ts#two', 'const b = 3\n'), folder)).toHaveLength(1)
  expect(findStaleSnippets(fence('a.ts#three', ''), folder)).toHaveLength(1)
  expect(findStaleSnippets(fence('absent.ts', ''), folder)).toHaveLength(1)
})

test('updating makes a stale page fresh and leaves the rest alone', () => {
  const updated = updateSnippets(fence('a.ts#two', 'old\n'), folder)
  expect(updated).toBe(fence('a.ts#two', 'const b = 2\n'))
})

describe('pages show what runs (fix with `node scripts/snippets.ts`)', () => {
  test.each(findPages().map((file) => [relative(root, file), file] as const))('%s', (_, file) => {
    expect(
      findStaleSnippets(readFileSync(file, 'utf8'), root, { hasImports: isPasted(file) }),
    ).toEqual([])
  })
})

const program = `import fs, { type Stats } from 'node:fs'
import * as path from 'node:path'
import {
  first,
  second as other,
} from './names.ts'
import type { Shape } from './shape.ts'
`

test.each([
  ['first()', "import { first } from './names.ts'\n"],
  ['other(), second', "import { second as other } from './names.ts'\n"],
  ['fs.statSync(path.join(a))', "import fs from 'node:fs'\nimport * as path from 'node:path'\n"],
  [
    'let a: Shape | Stats',
    "import { type Stats } from 'node:fs'\nimport type { Shape } from './shape.ts'\n",
  ],
  ['({ first })', "import { first } from './names.ts'\n"],
  ['({ first: 1 }).first // first', ''],
  ["'first', a.path", ''],
  [
    '`a text with first, and ${other()}` // it\'s "first"',
    "import { second as other } from './names.ts'\n",
  ],
])('a part of a program is shown with the imports that it uses: %s', (part, imports) => {
  expect(importsFor(program, part)).toBe(imports)
})

test('a long import is broken as prettier does', () => {
  const names = Array.from({ length: 12 }, (_, at) => `nameNumber${at}`)
  const module = `import {\n${names.map((name) => `  ${name},\n`).join('')}} from 'm'\n`
  expect(importsFor(module, names.join('()\n'))).toBe(module)
})

test('on a page that people paste from, a part of a program begins with its imports', () => {
  writeFileSync(
    join(folder, 'c.ts'),
    "import { a, b } from 'm'\nconst c = a()\n// #region use\nb(c)\n// #endregion use\n",
  )
  const filled = fence('c.ts#use', "import { b } from 'm'\n\nb(c)\n")
  expect(updateSnippets(fence('c.ts#use', ''), folder, { hasImports: true })).toBe(filled)
  expect(findStaleSnippets(filled, folder, { hasImports: true })).toEqual([])
  expect(programOf('ts file=c.ts#use', folder)).toEqual({
    path: 'c.ts',
    text: "import { a, b } from 'm'\nconst c = a()\nb(c)\n",
  })
})

test('a fence without imports is reported unless its program can be opened', () => {
  expect(fencesWithoutImports('```ts\nrun()\n```\n', folder)).toHaveLength(1)
  expect(fencesWithoutImports("```ts\nimport { run } from 'm'\n```\n", folder)).toEqual([])
  expect(fencesWithoutImports('```sh\nls\n```\n', folder)).toEqual([])
  expect(fencesWithoutImports(fence('c.ts#use', 'b(c)\n'), folder)).toEqual([])
  expect(fencesWithoutImports(fence('absent.ts#use', 'b(c)\n'), folder)).toHaveLength(1)
})

test('a fence that calls a function of a package without its import is reported', () => {
  const code = (text: string): string => `\`\`\`ts\nimport { pino } from 'pino'\n\n${text}\`\`\`\n`
  const names = new Set(['serve', 'Runtime', 'tool'])
  const missing = (text: string): string[] => fencesWithoutImports(code(text), folder, names)
  expect(missing('await serve(runtime, { logger: pino() })\n')).toHaveLength(1)
  expect(missing('new Runtime()\n')).toHaveLength(1)
  expect(missing('http.serve(1)\nconst serve = 1\n// serve(1)\n({ tool: 1 })\n')).toEqual([])
  expect(missing("import { serve } from 'm'\n\nserve(1)\n")).toEqual([])
  expect(missing('function serve() {}\nserve()\n')).toEqual([])
})

describe('code of pages can be pasted', () => {
  const pages = findPages().filter(isPasted)
  const names = new Set(publicNames().map(({ name }) => name))
  test.each(pages.map((file) => [relative(root, file), file] as const))('%s', (_, file) => {
    expect(fencesWithoutImports(readFileSync(file, 'utf8'), root, names)).toEqual([])
  })
})

describe('a guide links to the whole program of each part that it shows', () => {
  const pages = findPages().filter(
    (file) => isPasted(file) && !file.startsWith(join(root, 'docs', 'site')),
  )
  test.each(pages.map((file) => [relative(root, file), file] as const))('%s', (_, file) => {
    const text = readFileSync(file, 'utf8')
    const shown = [...text.matchAll(/^```\w+ file=([^#\s]+)#/gm)].map(([, path = '']) => path)
    const links = linksOf(text).map(({ href }) => relative(root, join(dirname(file), href)))
    expect(shown.filter((path) => !links.includes(path))).toEqual([])
  })
})

test('the front page shows no code that no one runs', () => {
  expect(countUnnamedFences(readFileSync(join(root, 'README.md'), 'utf8'))).toBe(0)
})
