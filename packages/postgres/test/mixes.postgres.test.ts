import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Mixes } from '../../server/test/kill/mixes.ts'
import { countOf } from '../../../conformance/support/counts.ts'
import { groundOn } from './mixes.ts'
import { noPostgres, startPostgres, type TestPostgres } from './server.ts'

const MIXES = countOf({ fast: 10, all: 10, deep: 200 })

describe.skipIf(noPostgres !== undefined)('skein serve', () => {
  let server: TestPostgres
  beforeAll(async () => {
    server = await startPostgres()
  }, 60_000)
  afterAll(() => server?.stop(), 60_000)

  test(
    `three nodes on PostgreSQL, ${MIXES} mixes of kill -9, stop, time limit and cancel: the log never contradicts the world`,
    { timeout: 180_000 + 15_000 * MIXES },
    async () => {
      const counted = await new Mixes(await groundOn(server, 'mixes')).play(MIXES)
      process.stdout.write(`PostgreSQL: ${counted}\n`)
      expect(counted).toContain('0 contradictions')
    },
  )
})
