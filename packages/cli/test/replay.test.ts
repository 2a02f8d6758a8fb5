import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { skein, tempFolder } from './kit.ts'

const waiter = (prompt: string): string => `import { says, scripted } from '@skein/ai/testing'
import { defineAgent, defineModel } from '@skein/runtime'
const model = defineModel({ name: 'brief', model: scripted(() => says('Welcome.')), inputPrice: 1, outputPrice: 1 })
export default defineAgent({ name: 'waiter', instructions: '${prompt}', model })`

test('check --replay and replay say what new definitions change', { timeout: 60_000 }, async () => {
  const cwd = tempFolder()
  for (const [folder, prompt] of [
    ['.', 'You serve.'],
    ['next', 'You serve guests.'],
  ] as const) {
    mkdirSync(join(cwd, folder, 'agents'), { recursive: true })
    writeFileSync(join(cwd, folder, 'agents', 'waiter.ts'), waiter(prompt))
  }
  const run = await skein(['run', 'waiter', 'Hello', '--json'], { cwd })
  const threadId = /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(run.stdout)![0]

  const limits = ['--last', '1000', '--max-cost', '5', '--progress', 'check.jsonl']
  const same = await skein(['check', '.', '--replay', '.skein', ...limits], { cwd })
  expect(same.stdout).toContain('1 threads: 1 the same, 0 differ, 0 not checked.')
  expect(same.code).toBe(0)

  const differs = await skein(['check', 'next', '--replay', '.skein', '--markdown'], { cwd })
  expect(differs.stdout).toContain('| 1 | instructions changed | instructions of waiter |')
  expect(differs.code).toBe(1)

  const played = await skein(['replay', threadId, '--play-back'], { cwd })
  expect(played.stdout).toMatch(/^\d+ events, all the same\.$/m)
  const replayed = await skein(['replay', threadId, '--folder', 'next', '--max-requests', '0'], {
    cwd,
  })
  expect(replayed.stdout).toContain('First difference at step 1: instructions of waiter.')
  expect(replayed.code).toBe(1)
})
