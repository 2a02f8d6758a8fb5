import { build } from 'esbuild'
import { expect, test } from 'vitest'
import { markPure } from './pure.ts'

async function leftOf(source: string): Promise<string> {
  const contents = markPure('a.ts', source)
  const { outputFiles } = await build({
    stdin: { contents, loader: 'ts' },
    bundle: true,
    write: false,
    format: 'iife',
  })
  return outputFiles[0]!.text
    .replaceAll(/^\(\(\) => \{|\}\)\(\);|^\s*"use strict";|^\s*\/\/.*$/gm, '')
    .trim()
}

test('a constant that no one uses is dropped with the calls and properties in its value', async () => {
  expect(
    await leftOf(`
      const Code = { A: 'a' } as const
      const call = make(1)
      const set = new Set(words.split(' '))
      const table: Record<string, string> = { [Code.A]: Code.A, ...other }
      const sum = 24 * Code.A.length
    `),
  ).toBe('')
})

test('statements stay, and functions keep their text', async () => {
  expect(await leftOf('register(1)')).toBe('register(1);')
  const source =
    'const f = () => make(x.y)\nfunction g() { return h.i() }\nclass C { static j = k.l }'
  expect(markPure('a.ts', source)).toBe(source)
})
