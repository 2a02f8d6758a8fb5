import { queueDispatcher } from '@skein/postgres'
import { describe } from 'vitest'
import { noPostgres } from './server.ts'
import { standardAgentsAgain } from './standard-agents.ts'

// The deep run (SKEIN_DEEP) has all files, CI a share.
describe.skipIf(noPostgres !== undefined)('again on PostgreSQL and its queue', () =>
  standardAgentsAgain(async ({ url }) => ({
    open: async (place) =>
      queueDispatcher({ connectionString: url, schema: `queue${place}`, maxConnections: 2 }),
    stop: async () => {},
  })),
)
