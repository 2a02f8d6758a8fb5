import { globSync } from 'node:fs'
import { join } from 'node:path'
import { postgresStore, type PostgresStore } from '@skein/postgres'
import { memoryGovernanceKeys } from '@skein/runtime'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, vi } from 'vitest'
import { simulateOn } from '../../../conformance/standard-agents/support/simulate.ts'
import { newSchema, noPostgres, startPostgres, type TestPostgres } from './server.ts'

// The tests of the Standard Agents specification once more, on this store. They prove their rows where they
// stand; here they only have to pass.
const root = join(import.meta.dirname, '../../..')
const files = globSync('conformance/standard-agents/*.test.ts', { cwd: root }).toSorted()

// Properties that take a second in memory take many commits here.
vi.setConfig({ testTimeout: 120_000 })

describe.skipIf(noPostgres !== undefined)('again on PostgreSQL', async () => {
  let server: TestPostgres
  let admin: pg.Client
  /** Stores of earlier tests, emptied: creating the tables takes longer than most tests. */
  const free: { readonly schema: string; readonly store: PostgresStore }[] = []
  const used: typeof free = []
  beforeAll(async () => {
    server = await startPostgres()
    admin = new pg.Client({ connectionString: server.url })
    await admin.connect()
    simulateOn(async () => {
      const one = free.pop() ?? (await opened())
      used.push(one)
      const { counted, settled } = watched(one.store)
      const keys = memoryGovernanceKeys({ seed: 'test' })
      return { store: counted, settled, secretKey: new Uint8Array(32), keys }
    })
  }, 60_000)
  afterEach(async () => {
    for (const one of used.splice(0)) {
      await admin.query(TABLES.map((table) => `DELETE FROM ${one.schema}.${table};`).join(''))
      free.push(one)
    }
  })
  afterAll(async () => {
    await Promise.all(free.map(({ store }) => store.close()))
    await admin.end()
    await server.stop()
  }, 60_000)

  async function opened() {
    const schema = newSchema()
    const connectionString = server.url
    return { schema, store: await postgresStore({ connectionString, schema, maxConnections: 3 }) }
  }

  for (const file of files) await import(join(root, file))
})

const TABLES =
  'threads events blobs blob_chunks blob_names audit audit_trees spent settings counters user_values'.split(
    ' ',
  )

/** A store that knows whether it has answered everything. */
function watched(store: PostgresStore): {
  readonly counted: PostgresStore
  readonly settled: () => Promise<void>
} {
  let open = 0
  const counted = new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return (...args: unknown[]): unknown => {
        const answer: unknown = member.apply(target, args)
        if (!(answer instanceof Promise)) return answer
        open += 1
        return answer.finally(() => (open -= 1))
      }
    },
  })
  const settled = async (): Promise<void> => {
    for (let still = 0; still < 10; still = open > 0 ? 0 : still + 1)
      await new Promise((resolve) => setTimeout(resolve, open > 0 ? 1 : 0))
  }
  return { counted, settled }
}
