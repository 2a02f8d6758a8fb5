import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Load, type LoadOptions, pass } from '../../postgres/test/load.ts'
import { noPostgres, startPostgres, type TestPostgres } from '../../postgres/test/server.ts'
import { type Balancer, startBalancer } from './balancer.ts'
import type { EngineSettings } from './load-dispatcher.ts'
import { freePorts, missingRestate, type RestateServer, startRestate } from './server.ts'

// In CI ten kills of nodes for each engine; a hundred with SKEIN_DEEP.
const isDeep = process.env['SKEIN_DEEP'] !== undefined
const KILLS = isDeep ? 100 : 10
const timeout = isDeep ? 1_800_000 : 180_000
const module = join(import.meta.dirname, 'load-dispatcher.ts')

let postgres: TestPostgres
let restate: RestateServer
let balancer: Balancer
let load: Load | undefined
let services = 0

/** Two nodes with an engine. Those of Restate are behind a balancer, which notices at once when one is killed. */
async function open(
  engine: EngineSettings['engine'],
  more: Partial<LoadOptions> = {},
): Promise<{ readonly running: Load; readonly kill: (index: number) => Promise<void> }> {
  const ports = await freePorts(2)
  const addressOf = (index: number): string => `http://127.0.0.1:${ports[index]}`
  const serviceName = `Kill${services++}`
  const { ingressUrl, adminUrl } = restate
  const shared = { ingressUrl, adminUrl, address: balancer.url, serviceName }
  const dispatcher: LoadOptions['dispatcher'] = (index) => {
    if (engine === 'queue') return { module, options: { engine } }
    balancer.add(addressOf(index))
    return { module, options: { engine, restate: { ...shared, listen: { port: ports[index] } } } }
  }
  const running = await Load.open({ server: postgres, dispatcher, ...more })
  load = running
  await Promise.all([running.start(0), running.start(1)])
  const kill = async (index: number): Promise<void> => {
    await running.kill(index)
    balancer.remove(addressOf(index))
  }
  return { running, kill }
}

describe.skipIf(noPostgres !== undefined || missingRestate() !== undefined)('two nodes', () => {
  beforeAll(async () => {
    ;[postgres, restate, balancer] = await Promise.all([
      startPostgres(),
      startRestate(),
      startBalancer(),
    ])
  }, 120_000)
  afterAll(async () => {
    await Promise.all([restate?.stop(), balancer?.stop(), postgres?.stop()])
  }, 60_000)
  afterEach(async () => {
    await load?.stop()
    load = undefined
  }, 60_000)

  for (const engine of ['restate', 'queue'] as const) {
    test(
      `${engine}: kill -9 of nodes under load, ${KILLS} times: nothing lost or doubled, order kept`,
      { timeout },
      async () => {
        const { running, kill } = await open(engine)
        await running.begin()
        for (let kills = 0; kills < KILLS; kills++) {
          await pass(300 + running.random() * 700)
          const index = kills % 2
          await kill(index)
          await running.start(index)
        }
        await running.end()
        const told = await running.check()
        const { p50, p99, most } = running.pauseStatistics()
        process.stdout.write(
          `${engine}: ${KILLS} kills, ${told}; ${running.pauses.length} threads taken over, pause p50 ${p50} ms, p99 ${p99} ms, longest ${most} ms\n`,
        )
        expect(running.pauses.length).toBeGreaterThan(KILLS / 2)
        expect(p99).toBeLessThan(10_000)
      },
    )

    test(`${engine}: a frozen node is taken over within 10 s, and cannot write when it wakes up`, async () => {
      const { running } = await open(engine, { thinkMs: 1, toolMs: 2_500 })
      const { id } = await running.client.threads.create({ agent: 'desk', clientId: 'thread-0' })
      await running.client.threads.send(id, { text: 'm-0-1', messageId: 'm-0-1' })
      while (running.effects.lines().length === 0) await pass(20)
      const { child, owner } = await running.ownerOf(id)
      child.kill('SIGSTOP')
      running.watchTakeover(owner)
      await running.idle(20_000)
      const log = await running.store.events(id)
      child.kill('SIGCONT')
      // Its call ends now, and it tries to say so.
      await pass(3_500)
      expect(await running.store.events(id)).toEqual(log)
      running.sent.push(['m-0-1'])
      await running.end()
      await running.check()
      console.log(
        `${engine}: a frozen node was taken over after ${Math.round(running.pauses[0]!)} ms`,
      )
      expect(running.pauses).toHaveLength(1)
      expect(running.pauses[0]).toBeLessThan(10_000)
    }, 90_000)
  }
})
