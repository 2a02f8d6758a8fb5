import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const fixture = fileURLToPath(new URL('./fixtures/consume.ts', import.meta.url))

/** Node's `strict` turns every unhandled rejection into a crash, even if it is handled later. */
function run(): Promise<{ code: number | null; output: string }> {
  const flags = ['--unhandled-rejections=strict', '--conditions=@skein/source']
  const child = spawn(process.execPath, [...flags, fixture])
  let output = ''
  child.stdout.on('data', (data) => (output += String(data)))
  child.stderr.on('data', (data) => (output += String(data)))
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })))
}

test('UPP-087 however a call is read, left, aborted or broken: no unhandled rejection and no hang', async () => {
  const patterns = [...readFileSync(fixture, 'utf8').matchAll(/^ {2}async (\w+)\(\)/gm)]
  const { code, output } = await run()
  expect(output).toBe(patterns.map(([, name]) => name).join(' '))
  expect(patterns.length).toBeGreaterThan(10)
  expect(code).toBe(0)
})
