import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Load, type LoadOptions, pass } from './load.ts'
import { startProxy } from './proxy.ts'
import { noPostgres, startPostgres, type TestPostgres } from './server.ts'

// In CI ten kills of nodes; a hundred with SKEIN_DEEP.
const isDeep = process.env['SKEIN_DEEP'] !== undefined
const KILLS = isDeep ? 100 : 10
/** How often the database is killed. */
const OUTAGES = isDeep ? 20 : 2
const timeout = isDeep ? 1_800_000 : 180_000

describe.skipIf(noPostgres !== undefined)('nodes under load, without an engine', () => {
  let server: TestPostgres
  let load: Load | undefined
  beforeAll(async () => {
    server = await startPostgres()
  }, 60_000)
  afterAll(() => server?.stop(), 60_000)
  afterEach(async () => {
    await load?.stop()
    load = undefined
  }, 60_000)

  async function open(options: Partial<LoadOptions> = {}): Promise<Load> {
    load = await Load.open({ server, ...options })
    await Promise.all([load.start(0), load.start(1)])
    return load
  }

  test(
    `kill -9 of nodes, ${KILLS} times: nothing is lost, doubled or out of order`,
    { timeout },
    async () => {
      const running = await open()
      await running.begin()
      for (let kills = 0; kills < KILLS; kills++) {
        await pass(300 + running.random() * 700)
        const index = kills % 2
        await running.kill(index)
        await running.start(index)
      }
      await running.end()
      const told = await running.check()
      const { p50, p99, most } = running.pauseStatistics()
      process.stdout.write(
        `${KILLS} kills, ${told}; ${running.pauses.length} threads taken over, pause p50 ${p50} ms, p99 ${p99} ms, longest ${most} ms\n`,
      )
      expect(running.pauses.length).toBeGreaterThan(KILLS / 2)
      expect(p99).toBeLessThan(10_000)
    },
  )

  test(
    `PostgreSQL is killed ${OUTAGES} times and connections are cut: nothing is lost, doubled or out of order`,
    { timeout },
    async () => {
      const proxy = await startProxy(server.url)
      const running = await open({ url: proxy.url })
      await running.begin()
      for (let outages = 0; outages < OUTAGES; outages++) {
        await pass(1_500)
        await server.kill9()
        // The second time the nodes give up their drains before the server is back.
        await pass(outages % 2 === 0 ? 300 : 6_000)
        await server.restart()
        running.watchProgress()
        await pass(1_500)
        for (let cuts = 0; cuts < 8; cuts++) {
          proxy.cutAll()
          await pass(running.random() * 300)
        }
        running.watchProgress()
      }
      await running.end()
      const told = await running.check()
      const { p50, p99, most } = running.pauseStatistics()
      process.stdout.write(
        `${OUTAGES} outages, ${told}; ${running.pauses.length} threads went on, pause p50 ${p50} ms, p99 ${p99} ms, longest ${most} ms\n`,
      )
      expect(running.pauses.length).toBeGreaterThan(OUTAGES)
      expect(p99).toBeLessThan(10_000)
      await proxy.stop()
    },
  )

  test(
    'a node that stands still for less than its lease goes on with its call',
    { timeout },
    async () => {
      const running = await open({ thinkMs: 1, toolMs: 2_500 })
      const { id } = await running.client.threads.create({ agent: 'desk', clientId: 'thread-0' })
      await running.client.threads.send(id, { text: 'm-0-1', messageId: 'm-0-1' })
      while (running.effects.lines().length === 0) await pass(20)
      const { child, owner } = await running.ownerOf(id)
      const { epoch } = (await running.store.head(id))!
      child.kill('SIGSTOP')
      await pass(2_000)
      child.kill('SIGCONT')
      const heads = await running.store.head(id)
      expect([heads?.epoch, heads?.lease?.owner]).toEqual([epoch, owner])
      await running.idle(20_000)
      running.sent.push(['m-0-1'])
      await running.check()
      const ended = (await running.store.events(id)).flatMap(({ event }) =>
        event.type === 'tool_execution_end' ? event.outcome : [],
      )
      expect(ended).toEqual(['success'])
      expect((await running.store.head(id))?.epoch).toBe(epoch)
    },
  )

  test(
    'a node that stands still for longer is taken over, and writes nothing when it wakes up',
    { timeout },
    async () => {
      const running = await open({ thinkMs: 1, toolMs: 2_500 })
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
      const ended = log.flatMap(({ event }) =>
        event.type === 'tool_execution_end' ? event.outcome : [],
      )
      expect(ended).toEqual(['unknown'])
      expect(running.pauses).toHaveLength(1)
      expect(running.pauses[0]).toBeLessThan(10_000)
    },
  )
})
