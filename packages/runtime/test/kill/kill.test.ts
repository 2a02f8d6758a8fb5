import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { seededRandom } from '@skein/base'
import { sqliteStore } from '@skein/runtime'
import { checkKilled } from './check-killed.ts'
import { EffectsFile } from './kill-agents.ts'
import { countOf } from '../../../../conformance/support/counts.ts'

const KILLS = countOf({ fast: 2, all: 10, deep: 50 })
const THREADS = countOf({ fast: 8, all: 20, deep: 20 })
const MESSAGES = countOf({ fast: 8, all: 15, deep: 15 })
const THINK_MS = countOf({ fast: 40, all: 40, deep: 120 })
const folder = mkdtempSync(join(tmpdir(), 'skein-kill-'))
const random = seededRandom(Number(process.env['SKEIN_SEED'] ?? 5))

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Runs the worker until it is done, or until it is killed some time after it is ready. */
async function work(killAfterMs: number | undefined): Promise<'done' | 'killed'> {
  const program = join(import.meta.dirname, 'worker.ts')
  const given = [folder, THREADS, MESSAGES, THINK_MS].map(String)
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
  `SA-81 kill -9 under load, ${KILLS} times: all is done, nothing is lost, doubled or out of order`,
  { timeout: 600_000 },
  async () => {
    const effects = new EffectsFile(join(folder, 'effects.txt'))
    writeFileSync(join(folder, 'effects.txt'), '')
    let kills = 0
    while (kills < KILLS && (await work(20 + random() * 230)) === 'killed') kills++
    expect(kills, 'the work was done before it was killed often enough').toBe(KILLS)
    expect(await work(undefined)).toBe('done')
    const store = sqliteStore({ path: join(folder, 'data', 'skein.db') })
    expect(await store.check()).toEqual([])
    const wanted = Array.from({ length: THREADS }, (_, thread) =>
      Array.from({ length: MESSAGES }, (_, number) => `m-${thread}-${number}`),
    )
    const { threads, outcomes } = await checkKilled(store, { wanted, effects })
    await store.close()
    process.stdout.write(`${kills} kills, ${threads} threads, ${JSON.stringify(outcomes)}\n`)
  },
)
