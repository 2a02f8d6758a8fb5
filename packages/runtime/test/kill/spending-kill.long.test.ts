import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { seededRandom } from '@skein/base'
import { sqliteStore } from '@skein/runtime'

const isDeep = process.env['SKEIN_DEEP'] !== undefined
const KILLS = isDeep ? 40 : 4
const THREADS = 12
// Each kill loses a reservation of every thread at most, so that there is work left for the next one.
const MAX_INFERENCES = 100 + 2 * KILLS * THREADS
const MESSAGES = Math.ceil((MAX_INFERENCES * 1.5) / THREADS)
const folder = mkdtempSync(join(tmpdir(), 'skein-spending-'))
const random = seededRandom(Number(process.env['SKEIN_SEED'] ?? 7))

afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function work(killAfterMs: number | undefined): Promise<'done' | 'killed'> {
  const program = join(import.meta.dirname, 'spending-worker.ts')
  const given = [folder, THREADS, MESSAGES, MAX_INFERENCES].map(String)
  const worker = spawn(process.execPath, ['--conditions=@skein/source', program, ...given], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NODE_COMPILE_CACHE: join(folder, 'compiled') },
  })
  let problem = ''
  worker.stderr.on('data', (chunk: Buffer) => (problem += chunk.toString()))
  worker.stdout.once('data', () => {
    if (killAfterMs !== undefined) setTimeout(() => worker.kill('SIGKILL'), killAfterMs)
  })
  const [code, signal] = (await once(worker, 'close')) as [number | null, string | null]
  expect(problem).toBe('')
  expect([code, signal]).toEqual(signal === null ? [0, null] : [null, 'SIGKILL'])
  return signal === null ? 'done' : 'killed'
}

test(
  `kill -9 while a tenant spends, ${KILLS} times: the limit holds, and nothing stays reserved`,
  { timeout: 600_000 },
  async () => {
    writeFileSync(join(folder, 'asked.txt'), '')
    for (let kills = 0; kills < KILLS; kills++)
      expect(await work(20 + random() * 80), 'the work was done too early').toBe('killed')
    expect(await work(undefined)).toBe('done')
    const asked = readFileSync(join(folder, 'asked.txt'), 'utf8').split('\n').length - 1
    const store = sqliteStore({ path: join(folder, 'data', 'skein.db') })
    expect(await store.check()).toEqual([])
    const counters = [...(await store.counters('limit '))]
    const valueOf = (end: string): number =>
      counters.find(([name]) => name.startsWith('limit of ') && name.endsWith(end))?.[1] ?? 0
    const lifecycles = (await store.list({ limit: 1000 })).map(({ lifecycle }) => lifecycle)
    await store.close()
    // Everything that was asked is counted; what died before it was asked counts too.
    expect(valueOf(' spent inferences')).toBeGreaterThanOrEqual(asked)
    expect(valueOf(' spent inferences') - asked).toBeLessThanOrEqual(KILLS * THREADS)
    // There is more to do than the limit allows, so all of it was used, and no more.
    expect(valueOf(' spent inferences')).toBe(MAX_INFERENCES)
    for (const measure of ['inferences', 'tokens', 'nanoUsd'])
      expect(valueOf(` held ${measure}`)).toBe(valueOf(` spent ${measure}`))
    expect(counters.filter(([name]) => name.startsWith('limit kept '))).toEqual([])
    expect(lifecycles).toContain('waiting')
    process.stdout.write(`${KILLS} kills, ${asked} of ${MAX_INFERENCES} inferences asked\n`)
  },
)
