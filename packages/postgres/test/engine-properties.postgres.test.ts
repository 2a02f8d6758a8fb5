import { queueDispatcher } from '@skein/postgres'
import { afterAll, beforeAll, describe } from 'vitest'
import { type EngineGround, engineProperties } from './engine-properties.ts'
import { type CuttingProxy, startProxy } from './proxy.ts'
import { noPostgres, startPostgres, type TestPostgres } from './server.ts'

// In CI sixteen seeds; four hundred with SKEIN_DEEP.
describe.skipIf(noPostgres !== undefined)('the properties of the simulation', () => {
  let server: TestPostgres
  beforeAll(async () => {
    server = await startPostgres()
  }, 60_000)
  afterAll(() => server?.stop(), 60_000)

  engineProperties('queue', () => ({
    server,
    open: async (schema) => queueGround(server.url, schema),
  }))
})

/** The queue of each runtime has a proxy, whose connections end with its process. */
function queueGround(url: string, schema: string): EngineGround {
  const proxies: CuttingProxy[] = []
  return {
    async join() {
      const proxy = await startProxy(url)
      proxies.push(proxy)
      return {
        dispatcher: queueDispatcher({
          connectionString: proxy.url,
          schema: `${schema}_queue`,
          sweepMs: 200,
        }),
        die: () => void proxy.stop(),
      }
    },
    stop: async () => void (await Promise.all(proxies.map((proxy) => proxy.stop()))),
  }
}
