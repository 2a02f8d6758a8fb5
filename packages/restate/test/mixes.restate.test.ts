import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { countOf } from '../../../conformance/support/counts.ts'
import { groundOn } from '../../postgres/test/mixes.ts'
import { noPostgres, startPostgres, type TestPostgres } from '../../postgres/test/server.ts'
import { Mixes } from '../../server/test/kill/mixes.ts'
import { type Balancer, startBalancer } from './balancer.ts'
import { freePorts, missingRestate, type RestateServer, startRestate } from './server.ts'

const NODES = 3

const MIXES = countOf({ fast: 10, all: 10, deep: 200 })

describe.skipIf(noPostgres !== undefined || missingRestate() !== undefined)('skein serve', () => {
  let postgres: TestPostgres
  let restate: RestateServer
  let balancer: Balancer
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

  test(
    `three nodes with Restate, ${MIXES} mixes of kill -9, stop, time limit and cancel: the log never contradicts the world`,
    { timeout: 240_000 + 15_000 * MIXES },
    async () => {
      const ports = await freePorts(NODES)
      const { ingressUrl: restateIngress, adminUrl: restateAdmin } = restate
      const shared = {
        engine: 'restate',
        restateIngress,
        restateAdmin,
        restateAddress: balancer.url,
      }
      const nodes = ports.map((restatePort) => ({ ...shared, restatePort }))
      const address = (index: number): string => `http://127.0.0.1:${ports[index]}`
      const counted = await new Mixes({
        ...(await groundOn(postgres, 'mixes', nodes)),
        // The balancer notices at once when a node is killed.
        starting: (index) => balancer.add(address(index)),
        ended: (index) => balancer.remove(address(index)),
      }).play(MIXES)
      process.stdout.write(`Restate: ${counted}\n`)
      expect(counted).toContain('0 contradictions')
    },
  )
})
