import { afterAll, beforeAll, describe } from 'vitest'
import { killTests, twoNodes } from '../../postgres/test/kill-tests.ts'
import type { LoadOptions } from '../../postgres/test/load.ts'
import { noPostgres, startPostgres, type TestPostgres } from '../../postgres/test/server.ts'
import { type Balancer, startBalancer } from './balancer.ts'
import { loadDispatcher } from './load-dispatcher.ts'
import { freePorts, missingRestate, type RestateServer, startRestate } from './server.ts'

// In CI ten kills; a hundred with SKEIN_DEEP.
describe.skipIf(noPostgres !== undefined || missingRestate() !== undefined)('two nodes', () => {
  let postgres: TestPostgres
  let restate: RestateServer
  let balancer: Balancer
  let services = 0
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

  const open = twoNodes()
  // The nodes are behind a balancer, which notices at once when one is killed.
  killTests('restate', async (more: Partial<LoadOptions> = {}) => {
    const ports = await freePorts(2)
    const shared = { restate, balancer, serviceName: `Kill${services++}` }
    const dispatcher = (index: number) => loadDispatcher({ ...shared, port: ports[index]! })
    const running = await open({ server: postgres, dispatcher, ...more })
    const kill = async (index: number): Promise<void> => {
      await running.kill(index)
      balancer.remove(`http://127.0.0.1:${ports[index]}`)
    }
    return { running, kill }
  })
})
