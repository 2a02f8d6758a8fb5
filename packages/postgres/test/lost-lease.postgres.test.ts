import { postgresLink, postgresStore } from '@skein/postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lostLease } from '../../server/test/nodes/lost-lease.ts'
import { newSchema, noPostgres, startPostgres, type TestPostgres } from './server.ts'

describe.skipIf(noPostgres !== undefined)(
  'a node that loses its lease while a payment runs',
  () => {
    let server: TestPostgres
    beforeAll(async () => {
      server = await startPostgres()
    }, 60_000)
    afterAll(() => server.stop(), 60_000)

    test.each([
      ['write_low_risk', 'before the other node takes over', 'success'],
      ['write_low_risk', 'after the call was settled', 'unknown'],
      ['write_low_risk', 'after the call was settled, unnoticed', 'unknown'],
      ['write_high_risk', 'before the other node takes over', 'success'],
      ['write_high_risk', 'after the call was settled', 'success'],
    ] as const)('%s, which lands %s: %s', async (risk, landing, outcome) => {
      const place = { connectionString: server.url, schema: newSchema() }
      const nodes = { open: () => postgresStore(place), link: () => postgresLink(place) }
      const { events, shown } = await lostLease(nodes, { risk, landing })
      expect(events.find(({ type }) => type === 'tool_execution_end')).toMatchObject({ outcome })
      expect(shown).toContain('paid, number 7')
    })
  },
)
