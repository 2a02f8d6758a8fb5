import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { postgresStore, type PostgresStore } from '@skein/postgres'
import { memoryGovernanceKeys, type RuntimeOptions } from '@skein/runtime'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, vi } from 'vitest'
import { simulateOn } from '../../../conformance/standard-agents/support/simulate.ts'
import { newSchema, startPostgres, type TestPostgres } from './server.ts'
import { type VirtualEngine, virtualEngine } from './virtual-engine.ts'

const root = join(import.meta.dirname, '../../..')

/** An engine that all tests of a file share. */
export interface SharedEngine {
  /**
   * Makes the dispatchers of runtimes that run one after the other on one store. `place` tells apart those that run at
   * the same time.
   */
  readonly open: (place: number) => Promise<NonNullable<RuntimeOptions['dispatcher']>>
  readonly stop: () => Promise<void>
}

/** How many days it takes until CI has run all tests on an engine. The deep run has all of them. */
const SHARES = 4

/**
 * Defines the tests of the Standard Agents specification once more, on PostgreSQL. They prove their rows where they
 * stand; here they only have to pass. With an engine CI runs a share of the files, another one each day:
 * `SKEIN_SHARE=2` runs that of a certain day.
 */
export async function standardAgentsAgain(
  startEngine?: (server: TestPostgres) => Promise<SharedEngine>,
): Promise<void> {
  // Properties that take a second in memory take many commits here.
  vi.setConfig({ testTimeout: 120_000 })
  let server: TestPostgres
  let admin: pg.Client
  let engine: SharedEngine | undefined
  const engines: VirtualEngine[] = []
  /** Stores of earlier tests, emptied: creating the tables takes longer than most tests. */
  const free: { readonly schema: string; readonly store: PostgresStore }[] = []
  const used: typeof free = []
  beforeAll(async () => {
    server = await startPostgres()
    engine = await startEngine?.(server)
    admin = new pg.Client({ connectionString: server.url })
    await admin.connect()
    simulateOn(async () => {
      const one = free.pop() ?? (await opened())
      used.push(one)
      const { counted, settled } = watched(one.store)
      const keys = memoryGovernanceKeys({ seed: 'test' })
      const shared = { store: counted, secretKey: new Uint8Array(32), keys }
      if (!engine) return { ...shared, settled }
      const known = engines.findIndex((one) => one.isFree())
      const place = known < 0 ? engines.length : known
      const { dispatcher, settled: woken } = (engines[place] = virtualEngine(
        await engine.open(place),
      ))
      const both = async (): Promise<void> => {
        await settled()
        await woken()
        await settled()
      }
      return { ...shared, dispatcher, settled: both }
    })
  }, 120_000)
  afterEach(async () => {
    for (const one of used.splice(0)) {
      await admin.query(TABLES.map((table) => `DELETE FROM ${one.schema}.${table};`).join(''))
      free.push(one)
    }
  })
  afterAll(async () => {
    await engine?.stop()
    await Promise.all(free.map(({ store }) => store.close()))
    await admin.end()
    await server.stop()
  }, 60_000)

  async function opened() {
    const schema = newSchema()
    const connectionString = server.url
    return { schema, store: await postgresStore({ connectionString, schema, maxConnections: 3 }) }
  }

  for (const file of startEngine ? shareOfFiles() : allFiles()) await import(join(root, file))
}

function allFiles(): readonly string[] {
  return globSync('conformance/standard-agents/*.test.ts', { cwd: root }).toSorted()
}

/** The files whose tests start runtimes, or the share of them that is due. */
function shareOfFiles(): readonly string[] {
  const files = allFiles().filter((file) =>
    readFileSync(join(root, file), 'utf8').includes('simulate('),
  )
  if (process.env['SKEIN_DEEP'] !== undefined) {
    // Each run of a property starts a node: their counts stay those of CI.
    delete process.env['SKEIN_DEEP']
    return files
  }
  const day = Math.floor(Date.now() / 86_400_000)
  const share = Number(process.env['SKEIN_SHARE'] ?? day) % SHARES
  process.stdout.write(`share ${share} of ${SHARES}: SKEIN_SHARE=${share} repeats it\n`)
  return files.filter((_, index) => index % SHARES === share)
}

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
