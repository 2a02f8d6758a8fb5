import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { exampleAgents, skein, startDev, tempFolder } from './kit.ts'
import { Transcript } from './transcript.ts'

/** `SKEIN_WRITE_DOCS=1 npx vitest run first-five-minutes` writes the page anew. */
const page = join(import.meta.dirname, '..', '..', '..', 'docs', 'first-five-minutes.md')

test('the page says what happens', { timeout: 60_000 }, async () => {
  const before = readFileSync(page, 'utf8')
  const after = await new Transcript(tempFolder()).fill(before)
  if (process.env['SKEIN_WRITE_DOCS'] === undefined) expect(after).toBe(before)
  else writeFileSync(page, after)
  expect(after.match(/^\$ /gm)).toHaveLength(9)
})

test('a refund is still there after a restart', { timeout: 60_000 }, async () => {
  const cwd = tempFolder()
  const ask = (text: string) => skein(['run', 'support', text], { cwd })
  const { running } = await startDev([exampleAgents], { cwd })
  expect((await ask('Where is order O-8?')).stdout).toContain('on its way')
  const asked = await ask('Please refund order O-8.')
  expect(asked.code).toBe(3)
  const [, thread] = /skein approve (\S+)/.exec(asked.stderr)!
  expect((await skein(['approve', thread!, '--yes', '--follow'], { cwd })).stdout).toContain(
    'Done: 12 euros',
  )
  running.signal('SIGTERM')
  expect((await running.ended).code).toBe(0)

  await startDev([exampleAgents], { cwd })
  expect((await ask('Where is order O-8?')).stdout).toContain('is refunded')
  const again = await ask('Please refund order O-8.')
  const [, second] = /skein approve (\S+)/.exec(again.stderr)!
  const { stdout } = await skein(['approve', second!, '--yes', '--follow'], { cwd })
  expect(stdout).toContain('Order O-8 is refunded already.')
})
