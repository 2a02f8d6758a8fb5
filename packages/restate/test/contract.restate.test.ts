import { afterAll, beforeAll, describe } from 'vitest'
import { suiteFunctions } from '../../../conformance/support/suite-functions.ts'
import { describeDispatcher } from '@skein/runtime/testing'
import { restateDispatcher } from '@skein/restate'
import { missingRestate, type RestateServer, startRestate } from './server.ts'

let server: RestateServer
let count = 0

describe.skipIf(missingRestate() !== undefined)('with a Restate server', () => {
  beforeAll(async () => {
    server = await startRestate()
  }, 120_000)
  afterAll(async () => server?.stop())

  describeDispatcher(suiteFunctions(), {
    name: 'on Restate',
    time: 'real',
    open: (parts) =>
      restateDispatcher({ ...server, serviceName: `Thread${count++}` })({
        ...parts,
        maxConcurrent: 128,
      }),
  })
})
