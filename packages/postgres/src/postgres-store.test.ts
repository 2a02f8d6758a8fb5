import { afterAll, beforeAll, describe } from 'vitest'
import { describeStore } from '@skein/runtime/testing'
import { suiteFunctions } from '../../../conformance/support/suite-functions.ts'
import { newSchema, noPostgres, startPostgres, type TestPostgres } from '../test/server.ts'
import { postgresStore } from './postgres-store.ts'

if (noPostgres !== undefined) console.log(noPostgres)

describe.skipIf(noPostgres !== undefined)('PostgreSQL', () => {
  let server: TestPostgres
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())

  let schema = ''
  const open = (name: string) => postgresStore({ connectionString: server.url, schema: name })
  describeStore(suiteFunctions(), {
    name: 'PostgreSQL',
    open: () => open((schema = newSchema())),
    async reopen(store) {
      await store.close()
      return open(schema)
    },
  })
})
