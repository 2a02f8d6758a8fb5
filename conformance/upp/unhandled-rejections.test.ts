import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const fixture = fileURLToPath(new URL('./fixtures/consume.ts', import.meta.url))
const patterns = [...readFileSync(fixture, 'utf8').matchAll(/^ {2}async (\w+)\(\)/gm)].map(
  ([, name]) => name!,
)

/** Node's `strict` turns every unhandled rejection into a crash, whoever handles it later. */
function run(pattern: string): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [
    '--unhandled-rejections=strict',
    '--conditions=@skein/source',
    fixture,
    pattern,
  ])
  let output = ''
  child.stdout.on('data', (data) => (output += String(data)))
  child.stderr.on('data', (data) => (output += String(data)))
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })))
}

test.each(patterns)('UPP-087 no unhandled rejection and no hang: %s', async (pattern) => {
  const { code, output } = await run(pattern)
  expect(output).toBe(`${pattern} done`)
  expect(code).toBe(0)
})

test('the fixture would tell: its patterns are found', () => {
  expect(patterns.length).toBeGreaterThan(10)
})
