import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pass } from 'node:timers/promises'
import { says, scripted } from '@skein/ai/testing'
import type { DeployReport } from '@skein/evals'
import { createRuntime, defineAgent, sqliteStore } from '@skein/runtime'
import { expect, onTestFinished, test } from 'vitest'

const THREADS = 30
const KILLS = 2

test(
  'a check that is killed continues, and pays for no answer that it has twice',
  { timeout: 120_000 },
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'skein-check-kill-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const [path, asked, progress] = ['skein.db', 'asked', 'progress'].map((name) =>
      join(folder, name),
    )
    const model = scripted(() => says('Hello.'))
    const agent = defineAgent({ name: 'greeter', instructions: 'You greet.', model })
    const runtime = await createRuntime({
      agents: [agent],
      store: sqliteStore({ path: path! }),
      secretKey: new Uint8Array(32),
    })
    await runtime.start()
    for (let index = 0; index < THREADS; index++) {
      const { id } = await runtime.threads.create({ agent: 'greeter' })
      await runtime.threads.run(id, `Hi ${index}`)
    }
    await runtime.stop()

    const linesOf = (file: string): number =>
      existsSync(file) ? readFileSync(file, 'utf8').split('\n').length - 1 : 0
    const check = () => {
      const worker = join(import.meta.dirname, 'check-worker.ts')
      const args = ['--conditions=@skein/source', worker, path!, asked!, progress!]
      const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
      let text = ''
      child.stdout.setEncoding('utf8').on('data', (piece: string) => (text += piece))
      return {
        child,
        ended: new Promise<string>((resolve) => child.on('close', () => resolve(text))),
      }
    }
    for (let kill = 1; kill <= KILLS; kill++) {
      const { child, ended } = check()
      const enough = (THREADS / (KILLS + 1)) * kill
      while (linesOf(asked!) < enough && child.exitCode === null) await pass(2)
      child.kill('SIGKILL')
      await ended
    }
    const report = JSON.parse(await check().ended) as DeployReport
    expect(report).toMatchObject({
      threads: THREADS,
      same: 0,
      unchecked: 0,
      groups: [{ kind: 'instructions', count: THREADS }],
      requests: { sent: THREADS },
    })
    // Two requests may be on their way when the process dies; their answers never arrive.
    expect(linesOf(asked!)).toBeLessThanOrEqual(THREADS + 2 * KILLS)
    expect(linesOf(asked!)).toBeGreaterThanOrEqual(THREADS)
  },
)
