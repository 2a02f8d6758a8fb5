import { randomBytes } from 'node:crypto'
import { postgresStore } from '@skein/postgres'
import pg from 'pg'
import type { Ground, Takeover } from '../../server/test/kill/mixes.ts'
import { newPool, type TestPostgres } from './server.ts'

const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** The name of a process of `skein serve` in leases begins with this. */
const ownerOf = (pid: number): string => `skein-${pid}-`

/** Three nodes of `skein serve` on a new database; watches how long threads of killed nodes wait for another one. */
export async function groundOn(
  server: TestPostgres,
  name: string,
  nodes: readonly object[] = [{}, {}, {}],
): Promise<Ground> {
  const admin = new pg.Client({ connectionString: server.url })
  await admin.connect()
  await admin.query(`CREATE DATABASE ${name}`)
  await admin.end()
  const connectionString = server.url.replace(/\/postgres$/, `/${name}`)
  const pool = newPool({ connectionString, max: 2 })
  const dead = new Set<number>()
  const takeovers: Takeover[] = []
  const watching: Promise<void>[] = []

  /** Who holds the threads that wait or are worked on, among these. */
  async function holders(where: string, value: unknown): Promise<Map<string, string | null>> {
    const text = `SELECT id, lease_owner AS owner FROM skein.threads WHERE wake_at IS NOT NULL AND ${where}`
    const { rows } = await pool.query<{ id: string; owner: string | null }>(text, [value])
    return new Map(rows.map(({ id, owner }) => [id, owner]))
  }
  const isDead = (owner: string | null): boolean =>
    owner === null || [...dead].some((pid) => owner.startsWith(ownerOf(pid)))

  async function watch(pid: number): Promise<void> {
    const from = performance.now()
    const left = await holders('lease_owner LIKE $1', `${ownerOf(pid)}%`)
    const owners = new Map([...left.keys()].map((id) => [id, new Set([ownerOf(pid)])]))
    for (; owners.size > 0; await pass(100)) {
      const now = await holders('id = ANY($1)', [...owners.keys()])
      for (const [id, seen] of owners) {
        const owner = now.get(id)
        if (owner !== undefined && isDead(owner)) {
          if (owner !== null) seen.add(owner.slice(0, owner.indexOf('-', 6) + 1))
          continue
        }
        takeovers.push({ ms: performance.now() - from, deaths: seen.size })
        owners.delete(id)
      }
    }
  }

  return {
    nodes,
    env: {
      SKEIN_STORE: connectionString,
      SKEIN_NODE_SECRET: randomBytes(32).toString('hex'),
    },
    store: () => postgresStore({ connectionString }),
    watchTakeover(pid) {
      dead.add(pid)
      const seen = watch(pid)
      seen.catch(() => {}) // `takeovers` awaits it, unless the test fails before
      watching.push(seen)
    },
    async takeovers() {
      await Promise.all(watching)
      await pool.end()
      return takeovers
    },
  }
}
