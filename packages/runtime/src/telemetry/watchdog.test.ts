import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { createLoopWatch, type Blocked, type UserCode, type LoopWatch } from './watchdog.ts'

const program = fileURLToPath(new URL('../../test/fixtures/blocking-program.ts', import.meta.url))

/** Runs the program in a process of its own, because it blocks its event loop. */
async function run(blockedMs: number, loopBlockedMs = '200') {
  const args = ['--conditions=@skein/source', program, String(blockedMs), loopBlockedMs]
  const startedAt = performance.now()
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { timeout: 30_000 })
  const lines = stdout.split('\n').filter(Boolean)
  const printed = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  return { printed, stderr, ms: performance.now() - startedAt }
}

describe('in a process of its own', () => {
  test('a tool that blocks the loop after an await is named, also beside another open call', async () => {
    const { printed, stderr } = await run(700)
    const live = stderr.split('\n').filter((line) => line.startsWith('skein: '))
    expect(live).toHaveLength(1)
    expect(live[0]).toMatch('the tool "busy" of thread')
    expect(live[0]).not.toMatch('idle')
    expect(live[0]).toMatch(/\(spin at .*blocking-program\.ts:\d+\)/)
    const [report, done] = printed
    expect(report).toMatchObject({ code: 'LOOP_BLOCKED', threadId: expect.any(String) })
    const { message } = report as { message: string }
    expect(message).toMatch('the tool "busy" of thread')
    const told = Number(/stood still for (\d+) ms/.exec(message)?.[1])
    expect(told).toBeGreaterThan(550)
    expect(told).toBeLessThan(3000)
    expect(done).toEqual({ text: 'Done.' })
  }, 40_000)

  test('nothing is reported when nothing blocks, and the process ends by itself', async () => {
    const { printed, stderr } = await run(0, '1000')
    expect(printed).toEqual([{ text: 'Done.' }])
    expect(stderr).toBe('')
  }, 40_000)

  test('Infinity switches it off', async () => {
    const { printed, stderr } = await run(700, 'Infinity')
    expect(printed).toEqual([{ text: 'Done.' }])
    expect(stderr).toBe('')
  }, 40_000)
})

describe('before its second thread runs', () => {
  const code = (name: string): UserCode => ({ kind: 'hook', name, threadId: 't' })

  function spin(ms: number): void {
    const until = performance.now() + ms
    while (performance.now() < until);
  }

  /** Blocks the loop in a hook and returns the report. */
  async function reportOf(work: (watchdog: LoopWatch) => void): Promise<Blocked> {
    let resolve: (blocked: Blocked) => void = () => {}
    const reported = new Promise<Blocked>((resolved) => (resolve = resolved))
    const watchdog = createLoopWatch({ blockedMs: 100, report: (_, blocked) => resolve(blocked) })
    watchdog.start()
    const alive = setInterval(() => {}, 1000)
    try {
      work(watchdog)
      return await reported
    } finally {
      clearInterval(alive)
      watchdog.stop()
    }
  }

  test('code that has ended meanwhile is still a suspect', async () => {
    const { suspects, blockedMs, isCertain } = await reportOf((watchdog) =>
      watchdog.run(code('slow'), () => spin(300)),
    )
    expect(suspects).toEqual([code('slow')])
    expect(blockedMs).toBeGreaterThanOrEqual(100)
    expect(isCertain).toBe(false)
  })

  test('more code than there are slots runs, and results and errors pass through', async () => {
    const results: unknown[] = []
    await reportOf((watchdog) => {
      const never = Array.from({ length: 100 }, (_, index) =>
        watchdog.run(code(`open ${index}`), () => new Promise(() => {})),
      )
      results.push(watchdog.run(code('sum'), () => never.length))
      const failing = (): never => {
        throw new Error('mine')
      }
      expect(() => watchdog.run(code('failing'), failing)).toThrow('mine')
      spin(300)
    })
    expect(results).toEqual([100])
  })
})
