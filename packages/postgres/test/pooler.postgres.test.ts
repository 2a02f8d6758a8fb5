import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync, chmodSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { postgresStore } from '@skein/postgres'
import { describeStore } from '@skein/runtime/testing'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { suiteFunctions } from '../../../conformance/support/suite-functions.ts'
import { add, append, valuesOf } from './kit.ts'
import { newPool, newSchema, noPostgres, startPostgres, type TestPostgres } from './server.ts'

const pgbouncer = spawnSync('pgbouncer', ['--version'], { encoding: 'utf8' })
const hasBouncer = pgbouncer.status === 0

describe.skipIf(noPostgres !== undefined)('through a transaction pooler', () => {
  let server: TestPostgres
  beforeAll(async () => {
    server = await startPostgres()
  }, 60_000)
  afterAll(() => server.stop(), 60_000)

  /** A pool whose connections forget everything between two uses, as those of a transaction pooler may. */
  function forgetfulPool(isPipelined: boolean): pg.Pool {
    const pool = newPool({ connectionString: server.url, max: 4, pipeline: isPipelined })
    pool.on('release', (error, client) => {
      // Rejects if the connection was closed instead.
      if (!error) client.query('DISCARD ALL').catch(() => {})
    })
    return pool
  }

  test.each([true, false])(
    'nothing outlives a transaction (pipeline: %s)',
    async (isPipelined) => {
      const pool = forgetfulPool(isPipelined)
      const store = await postgresStore({ pool, schema: newSchema(), isPooled: true })
      const ids = ['a', 'b', 'c', 'd', 'e', 'f']
      for (const id of ids) await add(store, id)
      await Promise.all(
        ids.flatMap((id) => Array.from({ length: 10 }, (_, i) => append(store, id, i))),
      )
      for (const id of ids)
        expect(await valuesOf(store, id)).toEqual(Array.from({ length: 10 }, (_, i) => i))
      await store.close()
      expect(pool.ended).toBe(false) // a pool of the caller stays open
      await pool.end()
    },
    60_000,
  )

  test('without `isPooled` such a pool fails, so the test above can fail', async () => {
    const pool = forgetfulPool(true)
    const used = postgresStore({ pool, schema: newSchema(), retryMs: 100 }).then(async (store) => {
      for (let i = 0; i < 20; i++) await store.head('t')
    })
    await expect(used).rejects.toThrow(/prepared statement/)
    await pool.end()
  })

  describe(`pgbouncer`, () => {
    let bouncer: { readonly url: string; stop(): Promise<void> } | undefined
    beforeEach(({ skip }) => skip(!hasBouncer, 'pgbouncer is not installed'))
    beforeAll(async () => {
      if (hasBouncer) bouncer = await startBouncer(server.url)
    }, 30_000)
    afterAll(() => bouncer?.stop(), 30_000)

    test('is the real one', () => {
      console.log(pgbouncer.stdout.split('\n')[0])
      expect(pgbouncer.stdout).toContain('PgBouncer')
    })

    let schema = ''
    const open = (name: string) =>
      postgresStore({ connectionString: bouncer!.url, schema: name, isPooled: true })
    describeStore(suiteFunctions(), {
      name: 'PostgreSQL through pgbouncer',
      open: () => open((schema = newSchema())),
      async reopen(store) {
        await store.close()
        return open(schema)
      },
    })
  })
})

/** Starts pgbouncer in transaction mode with two connections to the server. */
async function startBouncer(url: string): Promise<{ url: string; stop(): Promise<void> }> {
  const target = new URL(url)
  const folder = mkdtempSync(join(tmpdir(), 'skein-bouncer-'))
  chmodSync(folder, 0o755)
  const port = await new Promise<number>((resolve) => {
    const probe = createServer()
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
  const password = decodeURIComponent(target.password)
  writeFileSync(join(folder, 'users.txt'), `"postgres" "${password}"\n`)
  writeFileSync(
    join(folder, 'pgbouncer.ini'),
    `[databases]
postgres = host=127.0.0.1 port=${target.port} dbname=postgres user=postgres password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = plain
auth_file = ${join(folder, 'users.txt')}
pool_mode = transaction
default_pool_size = 2
max_client_conn = 100
ignore_startup_parameters = extra_float_digits
`,
  )
  const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const child = spawn('pgbouncer', ['-q', join(folder, 'pgbouncer.ini')], {
    ...user,
    stdio: 'ignore',
  })
  process.once('exit', () => child.kill('SIGKILL'))
  target.port = String(port)
  const until = Date.now() + 10_000
  for (;;) {
    const client = new pg.Client({ connectionString: target.href })
    client.on('error', () => {})
    try {
      await client.connect()
      await client.end()
      break
    } catch (error) {
      if (Date.now() > until) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  return {
    url: target.href,
    async stop() {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
