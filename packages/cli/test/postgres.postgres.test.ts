import { createHash, randomBytes } from 'node:crypto'
import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { canonicalJson, type JsonValue } from '@skein/base'
import { postgresStore, type PostgresStore } from '@skein/postgres'
import { loadSqliteStore, type StoreRow } from '@skein/runtime'
import { noPostgres, startPostgres, type TestPostgres } from '../../postgres/test/server.ts'
import { readBackup, writeBackup } from '../src/backup/backup-file.ts'
import { exampleAgents, Running, skein, tempFolder } from './kit.ts'
import { givenArbitrary, newPath, rowsOf, storeOf } from './stores.ts'

if (noPostgres !== undefined) process.stderr.write(`${noPostgres}\n`)
const timeout = 180_000
const about = { from: 'postgres', at: '2026-01-02T03:04:05.678Z' }

describe.skipIf(noPostgres !== undefined)('PostgreSQL', { timeout }, () => {
  let server: TestPostgres
  let databases = 0
  const stores: PostgresStore[] = []

  beforeAll(async () => {
    server = await startPostgres()
  }, 60_000)
  afterAll(async () => {
    // A property that failed has not closed its store, and the server waits for its clients.
    await Promise.all(stores.map((store) => store.close()))
    await server?.stop()
  }, 30_000)

  async function newDatabase(): Promise<string> {
    const name = `cli_${++databases}`
    const client = new pg.Client(server.url)
    await client.connect()
    await client.query(`CREATE DATABASE ${name} ENCODING 'UTF8' TEMPLATE template0`)
    await client.end()
    const url = new URL(server.url)
    url.pathname = `/${name}`
    return url.href
  }

  async function rowsIn(store: PostgresStore): Promise<StoreRow[]> {
    const rows: StoreRow[] = []
    for await (const row of store.rows()) rows.push(row)
    return rows
  }

  /** Every row as a text that does not depend on the order of members. Contents are their hashes. */
  const inOrder = (rows: readonly StoreRow[]): string[] =>
    rows
      .map((row) => canonicalJson((row.type === 'blob' ? { blob: row.hash } : row) as JsonValue))
      .toSorted()

  test('SQLite → PostgreSQL → file → SQLite gives the same rows', async () => {
    await fc.assert(
      fc.asyncProperty(givenArbitrary, async (given) => {
        const from = await storeOf(given)
        const store = await postgresStore({ connectionString: await newDatabase() })
        stores.push(store)
        await store.load(rowsOf(from))
        expect(inOrder(await rowsIn(store))).toEqual(inOrder(rowsOf(from)))
        const file = newPath('jsonl')
        await writeBackup(file, store.rows(), about)
        const to = newPath('db')
        await loadSqliteStore(to, readBackup(file))
        expect(inOrder(rowsOf(to))).toEqual(inOrder(rowsOf(from)))
        // The store continues: events, audit lines and versions follow those that were loaded.
        for (const { id, seq } of await store.list({ limit: 10 })) {
          const at = '2026-02-02T00:00:00.000Z'
          const event = { type: 'value_set', key: 'k', value: 1, at } as never
          const line = { tree: 't0', requestId: `new ${id}`, seq: 0, line: '{}' }
          const threads = [{ id, append: [event], expectSeq: seq }]
          const done = await store.commit({ point: 'test', threads, audit: [line] })
          expect(done.seqs.get(id)).toBe(seq + 1)
        }
        const totals = await store.totals()
        const count = [...totals.threads.values()].reduce((sum, one) => sum + one, 0)
        expect(count).toBe(given.threads.length)
        await store.close()
      }),
      { numRuns: 8 },
    )
  })

  test('rows are of one moment although others write; a store that is used is not filled', async () => {
    const connectionString = await newDatabase()
    const store = await postgresStore({ connectionString })
    const from = await storeOf(fc.sample(givenArbitrary, { numRuns: 1, seed: 4 })[0]!)
    await store.load(rowsOf(from))
    const before = inOrder(await rowsIn(store))
    const seen: StoreRow[] = []
    for await (const row of store.rows()) {
      if (seen.length === 0) await store.setSetting('later', { isThere: true })
      seen.push(row)
    }
    expect(inOrder(seen)).toEqual(before)
    await store.commit({
      point: 'test',
      threads: [],
      spent: [{ jti: 'x', exp: 1 }],
    })
    await expect(store.load([])).rejects.toMatchObject({ code: 'STATE_CONFLICT' })
    await store.close()
  })

  test('rows that end with an error leave the store empty', async () => {
    const store = await postgresStore({ connectionString: await newDatabase() })
    const from = await storeOf(fc.sample(givenArbitrary, { numRuns: 1, seed: 8 })[0]!)
    const broken = function* (): Generator<StoreRow, void, undefined> {
      yield* rowsOf(from)
      throw new Error('the file ends here')
    }
    await expect(store.load(broken())).rejects.toThrow('the file ends here')
    expect((await rowsIn(store)).filter(({ type }) => type !== 'counter')).toEqual([])
    await store.close()
  })

  test('two nodes serve one database; backup, restore and doctor use it', async () => {
    const cwd = tempFolder()
    symlinkSync(exampleAgents, join(cwd, 'definitions'))
    await skein(['keys', 'governance.json'], { cwd })
    const apiKey = 'a-key-of-this-test-that-is-long-enough'
    const sha256 = createHash('sha256').update(apiKey).digest('hex')
    const config = {
      agents: 'definitions',
      port: 0,
      engine: 'queue',
      governanceKeys: 'governance.json',
      authKeys: [{ sha256, tenant: 'acme', scopes: ['admin'] }],
    }
    writeFileSync(join(cwd, 'skein.config.json'), JSON.stringify(config))
    const env = {
      SKEIN_STORE: await newDatabase(),
      SKEIN_SECRET_KEY: randomBytes(32).toString('base64'),
      SKEIN_NODE_SECRET: randomBytes(32).toString('hex'),
    }
    const start = async (): Promise<{ running: Running; url: string }> => {
      const running = new Running(['serve', '--scripted'], { cwd, env })
      await running.until('stderr', '"listening"')
      return { running, url: /"url":"([^"]+)"/.exec(running.stderr)![1]! }
    }
    const [a, b] = [await start(), await start()]
    const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ agent: 'support', message: 'Where is order O-7?' })
    const created = await fetch(`${a.url}/threads`, { method: 'POST', headers, body })
    const { id } = (await created.json()) as { id: string }
    const result = await fetch(`${b.url}/threads/${id}/result`, { headers })
    expect(((await result.json()) as { text: string }).text).toContain('O-7')

    const doctor = await skein(['doctor'], { cwd, env })
    expect(doctor.stdout).toMatch(/^ok +store +postgres:\/\/\S+, 1 threads$/m)
    expect(doctor.stdout).toMatch(/^ok +clock +\d+ ms between/m)
    const written = await skein(['backup', 'all.jsonl'], { cwd, env })
    expect(written.stdout).toMatch(/1 threads, \d+ events, .*all verified/)
    const to = await newDatabase()
    const restored = await skein(['restore', 'all.jsonl', '--store', to], { cwd })
    expect(restored.stdout).toMatch(/1 threads, \d+ events, .*all verified/)
    const copied = await skein(['store', 'copy', to, 'sqlite:copy/skein.db'], { cwd })
    expect(copied.stdout).toContain('all verified')
    const again = await skein(['restore', 'all.jsonl', '--store', to], { cwd })
    expect(again.code).toBe(1)
    expect(again.stderr).toContain('is not empty')

    for (const { running } of [a, b]) running.signal('SIGTERM')
    for (const { running } of [a, b]) {
      expect((await running.ended).code).toBe(0)
      expect(running.stderr.trim().split('\n').at(-1)).toContain('drained: ')
    }
    const said =
      [a, b].map(({ running }) => running.stderr).join('') + doctor.stdout + written.stderr
    for (const secret of ['test-password', env.SKEIN_SECRET_KEY, env.SKEIN_NODE_SECRET])
      expect(said).not.toContain(secret)
  })
})
