import { restateDispatcher } from '@skein/restate'
import { afterAll, beforeAll, describe } from 'vitest'
import { type EngineGround, engineProperties } from '../../postgres/test/engine-properties.ts'
import { noPostgres, startPostgres, type TestPostgres } from '../../postgres/test/server.ts'
import { startBalancer } from './balancer.ts'
import { freePorts, missingRestate, type RestateServer, startRestate } from './server.ts'

const skips = noPostgres !== undefined || missingRestate() !== undefined

// In CI sixteen seeds; four hundred with SKEIN_DEEP.
describe.skipIf(skips)('the properties of the simulation', () => {
  let server: TestPostgres
  let restate: RestateServer
  beforeAll(async () => {
    ;[server, restate] = await Promise.all([startPostgres(), startRestate()])
  }, 120_000)
  afterAll(async () => {
    await Promise.all([server?.stop(), restate?.stop()])
  }, 60_000)

  engineProperties('Restate', () => ({ server, open: (schema) => restateGround(restate, schema) }))
})

/** The runtimes of a run are behind a balancer, which notices at once when one dies. */
async function restateGround(
  { ingressUrl, adminUrl }: RestateServer,
  serviceName: string,
): Promise<EngineGround> {
  const balancer = await startBalancer()
  return {
    async join() {
      const [port = 0] = await freePorts(1)
      const url = `http://127.0.0.1:${port}`
      balancer.add(url)
      return {
        dispatcher: restateDispatcher({
          ingressUrl,
          adminUrl,
          serviceName,
          address: balancer.url,
          listen: { port },
          sweepMs: 200,
        }),
        die: () => balancer.remove(url),
      }
    },
    stop: () => balancer.stop(),
  }
}
