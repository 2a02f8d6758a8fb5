import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { describeDispatcher } from '@skein/runtime/testing'
import { memoryStore, systemTimers } from '@skein/runtime'
import { suiteFunctions } from '../../../conformance/support/suite-functions.ts'
import { newSchema, noPostgres, startPostgres, type TestPostgres } from '../test/server.ts'
import { queueDispatcher } from './queue-dispatcher.ts'

let server: TestPostgres

describe.skipIf(noPostgres !== undefined)('with PostgreSQL', () => {
  beforeAll(async () => {
    server = await startPostgres()
  }, 60_000)
  afterAll(async () => server?.stop())

  describeDispatcher(suiteFunctions(), {
    name: 'on a queue in PostgreSQL',
    time: 'real',
    open: (parts) =>
      queueDispatcher({ connectionString: server.url, schema: newSchema() })({
        ...parts,
        maxConcurrent: 128,
      }),
  })

  test('a database that cannot be reached is an error without its password', async () => {
    const connectionString = 'postgres://someone:hunter2@127.0.0.1:1/none'
    const dispatcher = queueDispatcher({ connectionString })({
      store: memoryStore(),
      timers: systemTimers(),
      onError: () => {},
    })
    const error = await dispatcher
      .start(async () => {})
      .then(
        () => undefined,
        (error_: unknown) => error_,
      )
    expect(error).toMatchObject({
      code: 'QUEUE_UNREACHABLE',
      hint: expect.stringMatching(/direct/),
    })
    expect(`${String(error)} ${JSON.stringify(error)}`).not.toContain('hunter2')
    await dispatcher.stop()
  })
})
