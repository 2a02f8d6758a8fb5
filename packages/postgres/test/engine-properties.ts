import { postgresStore } from '@skein/postgres'
import type { Store } from '@skein/runtime'
import pg from 'pg'
import { expect, test } from 'vitest'
import type { Lane } from '../../runtime/src/testing/simulation.ts'
import { Coverage } from '../../runtime/test/simulation/coverage.ts'
import { type Plant, plants } from '../../runtime/test/simulation/plants.ts'
import { runInRealTime } from '../../runtime/test/simulation/real-time.ts'
import type { SeedReport } from '../../runtime/test/simulation/run-seed.ts'
import { describeFailure } from '../../runtime/test/simulation/run-seeds.ts'
import {
  type SimulatedStore,
  withSnapshots,
} from '../../runtime/test/simulation/simulated-store.ts'
import type { EngineSeat } from '../../runtime/test/simulation/world.ts'
import { newPool, newSchema, type TestPostgres } from './server.ts'
import { bytesOf, checkTotals } from './simulated-postgres.ts'

/** Where the runtimes of one run join an engine. */
export interface EngineGround {
  join(lane: Lane): Promise<EngineSeat>
  stop(): Promise<void>
}

const isDeep = process.env['SKEIN_DEEP'] !== undefined
const SEEDS = Number(process.env['SKEIN_SEEDS'] ?? (isDeep ? 400 : 16))
/** Runs wait most of their time for leases of the dead to end, so several run at the same time. */
const CONCURRENT = 6
const timeout = isDeep ? 3_600_000 : 240_000

/** The properties of the simulation on a store in PostgreSQL, with two runtimes at a time and a real engine. */
export function engineProperties(
  engine: string,
  parts: () => {
    readonly server: TestPostgres
    readonly open: (schema: string) => Promise<EngineGround>
  },
): void {
  async function playAll(
    seeds: readonly number[],
    play: (seed: number, pool: pg.Pool, admin: pg.Client) => Promise<boolean>,
  ): Promise<void> {
    const { server } = parts()
    const pool = newPool({ connectionString: server.url, max: 24 })
    const admin = new pg.Client({ connectionString: server.url })
    await admin.connect()
    const left = [...seeds]
    try {
      await Promise.all(
        Array.from({ length: CONCURRENT }, async () => {
          for (let seed = left.shift(); seed !== undefined; seed = left.shift())
            if (!(await play(seed, pool, admin))) left.length = 0
        }),
      )
    } finally {
      await pool.end()
      await admin.end()
    }
  }

  async function playOne(
    seed: number,
    pool: pg.Pool,
    admin: pg.Client,
    more: { readonly coverage?: Coverage; readonly plant?: Plant | undefined },
  ): Promise<SeedReport> {
    const schema = newSchema()
    const ground = await parts().open(schema)
    try {
      const stored = await openStore(schema, pool, admin)
      return await runInRealTime({ seed, stored, join: (lane) => ground.join(lane), ...more })
    } finally {
      await ground.stop()
    }
  }

  test(
    `${engine}: every promise holds when runtimes die at their commits, ${SEEDS} seeds`,
    { timeout },
    async () => {
      const coverage = new Coverage()
      const begun = performance.now()
      let played = 0
      const seeds = Array.from({ length: SEEDS }, (_, index) => index + 1)
      await playAll(seeds, async (seed, pool, admin) => {
        const report = await playOne(seed, pool, admin, { coverage })
        if (report.violations.length > 0)
          throw new Error(describeFailure(report, ', which plays it in virtual time'))
        played += 1
        return true
      })
      const counts = [...coverage.points.values()]
      const deaths = counts.reduce((sum, { before, after }) => sum + before + after, 0)
      const seconds = Math.round((performance.now() - begun) / 1000)
      process.stdout.write(
        `${engine}: ${played} seeds in ${seconds} s, ${deaths} deaths at commits\n`,
      )
      expect(played).toBe(SEEDS)
      expect(deaths).toBeGreaterThan(SEEDS / 2)
    },
  )

  // The laws look at what is in the database after real runs.
  test(`${engine}: a planted bug is found`, { timeout }, async () => {
    let found: string | undefined
    const seeds = Array.from({ length: 60 }, (_, index) => index + 1)
    await playAll(seeds, async (seed, pool, admin) => {
      const { violations } = await playOne(seed, pool, admin, { plant: plants['lost-order'] })
      found ??= violations.find((violation) => violation.includes('taken as'))
      return found === undefined
    })
    expect(found).toContain('taken as')
  })
}

async function openStore(schema: string, pool: pg.Pool, admin: pg.Client): Promise<SimulatedStore> {
  // Each runtime has a store of its own, as processes do, and knows only its own leases.
  const another = async (): Promise<Store> =>
    withSnapshots(await postgresStore({ pool, schema, retryMs: 60_000 }))
  return {
    store: await another(),
    another,
    bytes: () => bytesOf(admin, schema),
    async remove() {
      await checkTotals(admin, schema)
      await admin.query(`DROP SCHEMA ${schema} CASCADE`)
    },
  }
}
