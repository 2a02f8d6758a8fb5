import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { describeStore } from '@skein/runtime/testing'
import { suiteFunctions } from '../../../conformance/support/suite-functions.ts'
import { expectModel, MODEL_ANSWERS } from '../../runtime/test/store-model.ts'
import { newSchema, noPostgres, startPostgres, type TestPostgres } from '../test/server.ts'
import { postgresStore } from './postgres-store.ts'

if (noPostgres !== undefined) console.log(noPostgres)

describe.skipIf(noPostgres !== undefined)('PostgreSQL', () => {
  let server: TestPostgres
  beforeAll(async () => {
    server = await startPostgres()
  }, 60_000)
  afterAll(() => server.stop(), 60_000)

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

  test('the store does what the model does, refusals too', { timeout: 120_000 }, async () => {
    const answers = await expectModel(() => open(newSchema()), process.env['SKEIN_DEEP'] ? 500 : 80)
    for (const code of MODEL_ANSWERS) expect(answers.get(code) ?? 0, code).toBeGreaterThan(0)
  })
})
