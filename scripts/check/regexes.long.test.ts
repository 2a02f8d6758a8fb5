import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { root } from '../workspace.ts'
import { findSlowRegexes, regexesOf } from './regexes.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-regexes-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('every literal of a file is found, and RegExp with a constant text', () => {
  const text = [
    'const a = /b+/giu',
    'class C { static #d = [/\\/x$/] }',
    "const e = new RegExp('f.*', 'i'), g = RegExp('h')",
    'const i = RegExp(String.raw`\\d+`, "u"), hole = RegExp(String.raw`a${1}`)',
    'const notOne = 8 / 2 / 1, dynamic = new RegExp(e)',
  ].join('\n')
  expect(regexesOf('a.ts', text)).toEqual([
    { place: 'a.ts:1', source: 'b+', flags: 'giu' },
    { place: 'a.ts:2', source: '\\/x$', flags: '' },
    { place: 'a.ts:3', source: 'f.*', flags: 'i' },
    { place: 'a.ts:3', source: 'h', flags: '' },
    { place: 'a.ts:4', source: '\\d+', flags: 'u' },
  ])
})

test('no expression of the source is slow', { timeout: 600_000 }, async () => {
  expect(await findSlowRegexes(root)).toEqual([])
})

test('exponential and quadratic ones are problems with their place; linear ones and tests are not', async () => {
  writeFileSync(join(folder, 'a.ts'), 'export const a = /^ok$/\nexport const b = /^(a+)+$/\n')
  writeFileSync(join(folder, 'b.ts'), 'export const c = /<title[^>]*>/i\n')
  writeFileSync(join(folder, 'b.test.ts'), 'export const c = /(x+)+$/i\n')
  const problems = await findSlowRegexes(folder, '**/*.ts')
  expect(problems).toHaveLength(2)
  expect(problems[0]).toMatch(/^a\.ts:2: .*exponential/)
  expect(problems[1]).toMatch(/^b\.ts:1: .*2nd degree/)
})
