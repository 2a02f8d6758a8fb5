import { deepStrictEqual } from 'node:assert/strict'
import { postgresStore } from '@skein/postgres'
import type { Store } from '@skein/runtime'
import type { Clock } from '@skein/base'
import pg from 'pg'
import { chanceOf } from '../../runtime/test/simulation/chance.ts'
import {
  type SimulatedStore,
  withSnapshots,
} from '../../runtime/test/simulation/simulated-store.ts'
import { startProxy } from './proxy.ts'
import { newPool, startPostgres } from './server.ts'

/** A PostgreSQL server for simulated lives of the runtime, one after the other. */
export interface SimulatedPostgres {
  /** Opens an empty store in virtual time. Connections are cut at some of its commits, as the seed decides. */
  open(clock: Clock, seed: number): Promise<SimulatedStore>
  /** How many connections were cut at a COMMIT. */
  cuts(): number
  stop(): Promise<void>
}

/** How often the connection is lost with which a transaction is committed. */
const CUT = 0.02
const SCHEMA = 'skein'

/**
 * Starts a server whose clock stands still unless the simulation moves it: `clock_timestamp` is found in a
 * schema of the simulation first, so that leases and fences run the same statements as always.
 */
export async function startSimulatedPostgres(): Promise<SimulatedPostgres> {
  const server = await startPostgres()
  const proxy = await startProxy(server.url)
  const admin = new pg.Client({ connectionString: server.url })
  await admin.connect()
  await admin.query(`
    CREATE SCHEMA virtual;
    CREATE TABLE virtual.clock (now bigint NOT NULL);
    INSERT INTO virtual.clock VALUES (0);
    CREATE FUNCTION virtual.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
      AS $$ SELECT timestamptz 'epoch' + now * interval '1 millisecond' FROM virtual.clock $$;`)
  // The server never dies here, so no commit has to wait for the disk.
  const options = '-c search_path=virtual,pg_catalog -c synchronous_commit=off'
  const pool = newPool({ connectionString: proxy.url, options, max: 6, pipeline: true })

  return {
    cuts: proxy.faults,
    async open(clock, seed) {
      const chance = chanceOf(seed ^ 0x5a_17ed)
      let told = -1
      const line = oneByOne(async (isCommit) => {
        const now = clock.now()
        if (now !== told) await admin.query(`UPDATE virtual.clock SET now = ${now}`)
        told = now
        if (isCommit && chance.happens(CUT))
          proxy.atCommit(chance.pick(['cut before', 'cut after']))
      })
      // Each runtime has a store of its own, as processes do, and knows only its own leases.
      const { another } = line.wrap({
        another: async (): Promise<Store> => {
          const store = await postgresStore({ pool, schema: SCHEMA, retryMs: 60_000 })
          return line.wrap(withSnapshots(store))
        },
      })
      const store = await another()
      return {
        store,
        another,
        settled: line.settled,
        bytes: () => bytesOf(admin, SCHEMA),
        async remove() {
          await line.settled()
          await checkTotals(admin, SCHEMA)
          const zeros = TOTALS.map((name) => `${name} = 0`)
          const gone = (await tablesOf(admin, SCHEMA)).filter((name) => name !== 'totals')
          await admin.query(
            `${gone.map((name) => `DELETE FROM ${SCHEMA}.${name};`).join('')}
            UPDATE ${SCHEMA}.totals SET ${zeros.join(', ')}`,
          )
        },
      }
    },
    async stop() {
      await pool.end()
      await admin.end()
      await proxy.stop()
      await server.stop()
    },
  }
}

async function tablesOf(admin: pg.Client, schema: string): Promise<string[]> {
  const { rows } = await admin.query<{ name: string }>(
    `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = '${schema}'`,
  )
  return rows.map(({ name }) => name).filter((name) => name !== 'store_version')
}

/** Everything that the tables of a store hold. */
export async function bytesOf(admin: pg.Client, schema: string): Promise<readonly Buffer[]> {
  const found: Buffer[] = []
  for (const name of await tablesOf(admin, schema)) {
    const { rows } = await admin.query<unknown[]>({
      text: `SELECT * FROM ${schema}.${name}`,
      rowMode: 'array',
    })
    for (const value of rows.flat())
      if (value !== null)
        found.push(value instanceof Uint8Array ? Buffer.from(value) : Buffer.from(String(value)))
  }
  return found
}

const LIFECYCLES = [
  'idle',
  'queued',
  'running',
  'waiting',
  'stopped',
  'failed',
  'terminated',
  'erased',
]
const TOTALS = [...LIFECYCLES, 'tokens', 'cost_usd']

/** The sums that are kept beside the threads, in rows that any transaction may take, are those of the threads. */
export async function checkTotals(admin: pg.Client, schema: string): Promise<void> {
  const counts = LIFECYCLES.map(
    (name) => `count(*) FILTER (WHERE lifecycle = '${name}')::int AS ${name}`,
  )
  const kept = LIFECYCLES.map((name) => `sum(${name})::int AS ${name}`)
  const { rows } = await admin.query(
    `SELECT ${counts.join(', ')}, coalesce(sum(tokens), 0)::int AS tokens FROM ${schema}.threads
    UNION ALL SELECT ${kept.join(', ')}, sum(tokens)::int FROM ${schema}.totals`,
  )
  deepStrictEqual(rows[1], rows[0])
}

/**
 * Lets all stores of a run do one thing after the other, in the order of the calls, so that a seed is the same
 * run each time. `before` is called before each of them.
 */
function oneByOne(before: (isCommit: boolean) => Promise<void>): {
  wrap<T extends object>(target: T): T
  readonly settled: () => Promise<void>
} {
  let open = 0
  let last: Promise<unknown> = Promise.resolve()
  const inLine =
    <T>(target: T, name: string | symbol, member: (...args: unknown[]) => unknown) =>
    (...args: unknown[]): Promise<unknown> => {
      open += 1
      const answer = last.then(async () => {
        await before(name === 'commit')
        return member.apply(target, args)
      })
      last = answer.then(
        () => (open -= 1),
        () => (open -= 1),
      )
      return answer
    }
  const wrap = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(_, name) {
        const member: unknown = Reflect.get(target, name)
        if (name === 'snapshots') return wrap(member as object)
        return typeof member === 'function' ? inLine(target, name, member as () => unknown) : member
      },
    })
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
  const settled = async (): Promise<void> => {
    // Two turns of the event loop without a question to the store, because a drain may give way in between.
    for (let still = 0; still < 2; still = open > 0 ? 0 : still + 1) {
      if (open > 0) await last
      await turn()
    }
  }
  return { wrap, settled }
}
