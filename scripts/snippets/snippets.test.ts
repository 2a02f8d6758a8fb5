import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { root } from '../workspace.ts'
import { findPages } from './pages.ts'
import { countUnnamedFences, findStaleSnippets, updateSnippets } from './snippets.ts'

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

describe('pages show what runs (mend with `npm run snippets`)', () => {
  test.each(findPages().map((file) => [relative(root, file), file] as const))('%s', (_, file) => {
    expect(findStaleSnippets(readFileSync(file, 'utf8'), root)).toEqual([])
  })
})

test('the front page shows no code that nobody runs', () => {
  expect(countUnnamedFences(readFileSync(join(root, 'README.md'), 'utf8'))).toBe(0)
})
