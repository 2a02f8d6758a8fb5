import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { findPublicAny } from './public-any.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-any-'))
afterAll(() => rmSync(folder, { recursive: true }))
mkdirSync(join(folder, 'dist'))

async function check(files: Record<string, string>): Promise<string[]> {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, 'dist', name), text)
  const exports = { '.': { types: './dist/index.d.ts', default: './dist/index.js' } }
  return findPublicAny([{ name: 'x', folder, manifest: { name: 'x', exports } }])
}

test('an `any` in a type that the exports reach is found with its place', async () => {
  const problems = await check({
    'index.d.ts': `export { f } from './f.ts'\nexport declare const ok: unknown\n`,
    'f.d.ts': `export declare function f(x: string): Promise<any>\n`,
  })
  expect(problems).toHaveLength(1)
  expect(problems[0]).toContain('f.d.ts:1')
})

test('the word elsewhere is no problem', async () => {
  const problems = await check({
    'index.d.ts': `/** any: any */\nexport interface X { any: 'any'; readonly unknown: unknown }\nexport type { F } from './f.js'\n`,
    'f.d.ts': `export declare class F { any(): void }\n`,
    'internal.d.ts': `export declare const hidden: any\n`,
  })
  expect(problems).toEqual([])
})

test('a declaration that was not emitted is a problem', async () => {
  expect(await check({ 'index.d.ts': `export * from './absent.ts'\n` })).toHaveLength(1)
})
