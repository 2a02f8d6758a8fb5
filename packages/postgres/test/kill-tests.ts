import { afterEach, expect, test } from 'vitest'
import { Load, type LoadOptions, pass } from './load.ts'

export const isDeep: boolean = process.env['SKEIN_DEEP'] !== undefined
const KILLS = Number(process.env['SKEIN_KILLS'] ?? (isDeep ? 100 : 10))
/** For tests that kill again and again. */
export const killTimeout: number = isDeep ? 1_800_000 : 180_000

/** Two nodes under load. */
export interface KillableNodes {
  readonly running: Load
  readonly kill: (index: number) => Promise<void>
}

/** Returns a function that starts two nodes on a new database. They are stopped when their test is over. */
export function twoNodes(): (options: LoadOptions) => Promise<Load> {
  const loads: Load[] = []
  afterEach(async () => {
    for (const load of loads.splice(0)) await load.stop()
  }, 60_000)
  return async (options) => {
    const load = await Load.open(options)
    loads.push(load)
    await Promise.all([load.start(0), load.start(1)])
    return load
  }
}

/** What every engine has to show when nodes die or stand still. */
export function killTests(
  engine: string,
  open: (more?: Partial<LoadOptions>) => Promise<KillableNodes>,
): void {
  test(
    `${engine}: kill -9 of nodes under load, ${KILLS} times: nothing lost or doubled, order kept`,
    { timeout: killTimeout },
    async () => {
      const { running, kill } = await open()
      await running.begin()
      for (let kills = 0; kills < KILLS; kills++) {
        await running.prepare()
        await pass(300 + running.random() * 700)
        const index = kills % 2
        await kill(index)
        await running.start(index)
      }
      await tellAndCheck(running, `${engine}: ${KILLS} kills`)
      expect(running.pauses.length).toBeGreaterThan(KILLS / 2)
    },
  )

  test(
    `${engine}: a node that stands still for longer than its lease is taken over within 10 s, and only reports its late result when it wakes up`,
    { timeout: 120_000 },
    async () => {
      const { running } = await open({ thinkMs: 1, toolMs: 2_500 })
      const { id, child, owner } = await startCall(running)
      child.kill('SIGSTOP')
      running.watchTakeover(owner)
      await running.idle(20_000)
      const log = await running.store.events(id)
      child.kill('SIGCONT')
      // Its call ends now. Everything that needs the lease is refused.
      await pass(3_500)
      const later = await running.store.events(id)
      expect(later.slice(0, log.length)).toEqual(log)
      const late = { type: 'late_result', toolCallId: 'call_1', outcome: 'success' }
      expect(later.slice(log.length)).toMatchObject([{ event: late }])
      await tellAndCheck(running, `${engine}: a frozen node`)
      const ended = log.flatMap(({ event }) =>
        event.type === 'tool_execution_end' ? event.outcome : [],
      )
      expect(ended).toEqual(['unknown'])
      expect(running.pauses).toHaveLength(1)
    },
  )
}

/** Sends a message whose call takes long. Returns the thread and its node once the call has had its effect. */
export async function startCall(
  running: Load,
): Promise<{ readonly id: string } & Awaited<ReturnType<Load['ownerOf']>>> {
  const { id } = await running.client.threads.create({ agent: 'desk', clientId: 'thread-0' })
  await running.client.threads.send(id, { text: 'm-0-1', messageId: 'm-0-1' })
  running.sent.push(['m-0-1'])
  while (running.effects.lines().length === 0) await pass(20)
  return { id, ...(await running.ownerOf(id)) }
}

/** Waits for the end, checks that nothing was lost, doubled or late, and prints what was counted. */
export async function tellAndCheck(running: Load, what: string): Promise<void> {
  await running.end()
  const told = await running.check()
  const { p50, p99, most } = running.pauseStatistics()
  const late = running.pauseStatistics(running.afterLease)
  const ofIt =
    running.afterLease.length > 0
      ? `, of it after the end of the lease p50 ${late.p50} ms, p99 ${late.p99} ms, longest ${late.most} ms`
      : ''
  process.stdout.write(
    `${what}, ${told}; ${running.pauses.length} threads went on, pause p50 ${p50} ms, p99 ${p99} ms, longest ${most} ms${ofIt}\n`,
  )
  expect(p99).toBeLessThan(10_000)
}
