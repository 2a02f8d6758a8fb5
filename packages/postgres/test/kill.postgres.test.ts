import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isDeep, killTests, killTimeout, startCall, tellAndCheck, twoNodes } from './kill-tests.ts'
import { type LoadOptions, pass } from './load.ts'
import { startProxy } from './proxy.ts'
import { noPostgres, startPostgres, type TestPostgres } from './server.ts'

// In CI ten kills for each engine and two outages without one; a hundred and twenty of each with SKEIN_DEEP.
/** How often the database is killed. */
const OUTAGES = isDeep ? 20 : 2

describe.skipIf(noPostgres !== undefined)('nodes under load', () => {
  let server: TestPostgres
  beforeAll(async () => {
    server = await startPostgres()
  }, 60_000)
  afterAll(() => server?.stop(), 60_000)

  const open = twoNodes()
  for (const dispatcher of [undefined, 'queue'] as const)
    killTests(dispatcher ?? 'no engine', async (more: Partial<LoadOptions> = {}) => {
      const running = await open({ server, dispatcher: () => dispatcher, ...more })
      return { running, kill: (index) => running.kill(index) }
    })

  for (const dispatcher of isDeep ? ([undefined, 'queue'] as const) : [undefined])
    test(
      `${dispatcher ?? 'no engine'}: PostgreSQL is killed ${OUTAGES} times and connections are cut: nothing is lost, doubled or out of order`,
      { timeout: killTimeout },
      async () => {
        const proxy = await startProxy(server.url)
        const running = await open({ server, url: proxy.url, dispatcher: () => dispatcher })
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
        await tellAndCheck(running, `${dispatcher ?? 'no engine'}: ${OUTAGES} outages`)
        expect(running.pauses.length).toBeGreaterThan(OUTAGES)
        await proxy.stop()
      },
    )

  test(
    'a node that stands still for less than its lease goes on with its call',
    { timeout: 120_000 },
    async () => {
      const running = await open({ server, thinkMs: 1, toolMs: 2_500 })
      const { id, child, owner } = await startCall(running)
      const { epoch } = (await running.store.head(id))!
      child.kill('SIGSTOP')
      await pass(2_000)
      child.kill('SIGCONT')
      const heads = await running.store.head(id)
      expect([heads?.epoch, heads?.lease?.owner]).toEqual([epoch, owner])
      await running.idle(20_000)
      await running.check()
      const ended = (await running.store.events(id)).flatMap(({ event }) =>
        event.type === 'tool_execution_end' ? event.outcome : [],
      )
      expect(ended).toEqual(['success'])
      expect((await running.store.head(id))?.epoch).toBe(epoch)
    },
  )
})
