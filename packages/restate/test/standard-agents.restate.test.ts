import { restateDispatcher } from '@skein/restate'
import { describe } from 'vitest'
import { noPostgres } from '../../postgres/test/server.ts'
import { standardAgentsAgain } from '../../postgres/test/standard-agents.ts'
import { freePorts, missingRestate, startRestate } from './server.ts'

// The deep run (SKEIN_DEEP) has all files, CI a share.
describe.skipIf(noPostgres !== undefined || missingRestate() !== undefined)(
  'again on PostgreSQL and Restate',
  () =>
    standardAgentsAgain(async () => {
      const { ingressUrl, adminUrl, stop } = await startRestate()
      let services = 0
      return {
        async open() {
          const [port = 0] = await freePorts(1)
          const serviceName = `Again${services++}`
          return restateDispatcher({ ingressUrl, adminUrl, serviceName, listen: { port } })
        },
        stop,
      }
    }),
)
