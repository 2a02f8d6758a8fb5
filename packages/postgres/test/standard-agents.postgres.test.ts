import { describe } from 'vitest'
import { noPostgres } from './server.ts'
import { standardAgentsAgain } from './standard-agents.ts'

describe.skipIf(noPostgres !== undefined)('again on PostgreSQL', () => standardAgentsAgain())
