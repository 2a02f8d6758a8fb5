import type { Socket } from 'node:net'
import { postgresStore, tenantAccessSql, type BlobStore, type PostgresStore } from '@skein/postgres'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RuntimeEvent, ThreadQuery, WaitingQuery } from '@skein/runtime'
import { threadListing } from '../src/thread-listing.ts'
import { waitingListing } from '../src/waiting.ts'
import { add, append, event, valuesOf } from './kit.ts'
import { newPool, newSchema, noPostgres, startPostgres, type TestPostgres } from './server.ts'

describe.skipIf(noPostgres !== undefined)('the tables', () => {
  let server: TestPostgres
  let admin: pg.Client
  beforeAll(async () => {
    server = await startPostgres()
    admin = new pg.Client({ connectionString: server.url })
    await admin.connect()
  }, 60_000)
  afterAll(async () => {
    await admin.end()
    await server.stop()
  }, 60_000)
  const open = (schema: string, rest: { readonly blobs?: BlobStore } = {}) =>
    postgresStore({ connectionString: server.url, schema, ...rest })

  /** One thread with everything that a thread can have, for a tenant. */
  async function fill(store: PostgresStore, tenant: string): Promise<void> {
    const id = `thread of ${tenant}`
    await add(store, id, { tenant, owner: 'ada' })
    const hash = (tenant === 'a' ? '1' : '2').repeat(64)
    await store.commit({
      point: 'test',
      threads: [{ id, append: [event(hash), asks(`question of ${tenant}`)], head: { waiting: 1 } }],
      blobs: [{ hash, bytes: Uint8Array.of(1) }],
      audit: [{ tree: id, requestId: `r ${tenant}`, seq: 0, line: tenant }],
      spent: [{ jti: `j ${tenant}`, exp: 1 }],
      counters: [{ name: `limit ${tenant}`, add: 1 }],
      userValues: [{ tenant, user: 'ada', key: 'k', value: tenant, at: 'now' }],
    })
  }

  /** What a test runs to make a schema of version 2 from one of version 4. */
  const undoVersions3And4 = (schema: string): string =>
    `ALTER TABLE ${schema}.totals DROP COLUMN stopping;
     DROP TABLE ${schema}.waiting; DROP INDEX ${schema}.threads_by_lifecycle, ${schema}.threads_by_tag;`

  test('the calls in tables of version 1 are found after the step to version 2', async () => {
    const schema = newSchema()
    const first = await open(schema)
    await add(first, 'root')
    const place = { parentId: 'root', rootId: 'root', tenant: 'acme', owner: null, clientId: null }
    const create = { ...place, agent: 'helper', title: null, tags: [], createdAt: 1 }
    await first.commit({ point: 'test', threads: [{ id: 'child', create }] })
    const message = {
      id: 'm',
      type: 'assistant',
      timestamp: '',
      content: [{ type: 'text', text: 'NUL \0 and "toolCallId":"x","toolName":"never"' }],
      toolCalls: [
        { toolCallId: 'a"b\\', toolName: 'refund', arguments: {} },
        { toolCallId: 'c', toolName: 'pay', arguments: {} },
      ],
    }
    const said = { type: 'message_added', at: 'now', turnId: 't', side: 'a', message } as never // as stored
    await first.commit({ point: 'test', threads: [{ id: 'child', append: [said, said] }] })
    const tools = (await first.head('child'))!.tools
    expect(tools).toEqual(['refund', 'pay'])
    await first.close()
    await admin.query(`${undoVersions3And4(schema)}
      ALTER TABLE ${schema}.threads DROP COLUMN tools, DROP COLUMN granted_until;
      UPDATE ${schema}.store_version SET version = 1`)
    const store = await open(schema)
    expect((await store.head('child'))!.tools.toSorted()).toEqual(tools.toSorted())
    expect((await store.head('root'))!.tools).toEqual([])
    const found = async (tool: string) => (await store.list({ tool })).map(({ id }) => id).sort()
    expect(await found('refund')).toEqual(['child', 'root'])
    expect(await found('never')).toEqual([])
    await admin.query(`SET enable_seqscan = off`)
    const { rows } = await admin.query<Record<string, string>>(
      `EXPLAIN SELECT id FROM ${schema}.threads WHERE tools ? 'refund'`,
    )
    await admin.query(`RESET enable_seqscan`)
    expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('threads_by_tool')
    await store.close()
  })

  const at = new Date(5).toISOString()
  const asks = (id: string, toolCallId = 'c'): RuntimeEvent => {
    const interrupt = { id, toolCallId, kind: 'approval', request: {} } as const
    return { type: 'interrupt_opened', at, turnId: 't', interrupt }
  }

  test('the questions in logs of version 2 wait after the step to version 3', async () => {
    const schema = newSchema()
    const first = await open(schema)
    const answer = { type: 'approve' } as const
    const done = { type: 'interrupt_answered', at, interruptId: 'q1', answer } as const
    for (const id of ['one', 'two', 'none']) await add(first, id)
    const events = { one: [asks('q1', 'c1'), asks('q2', 'c2'), done], two: [asks('q3', 'c1')] }
    for (const [id, append] of Object.entries(events))
      await first.commit({ point: 'test', threads: [{ id, append, head: { waiting: 1 } }] })
    const waiting = await first.waiting({})
    expect(waiting.map(({ interruptId }) => interruptId)).toEqual(['q2', 'q3'])
    await first.close()
    await admin.query(`${undoVersions3And4(schema)} UPDATE ${schema}.store_version SET version = 2`)
    const nodes = await Promise.all([open(schema), open(schema)]) // one migrates, the other waits
    expect(await nodes[0].waiting({})).toEqual(waiting)
    expect(await nodes[1].waiting({})).toEqual(waiting)
    await Promise.all(nodes.map((node) => node.close()))
  })

  test('lists of one tenant and of what waits use an index when there are many rows', async () => {
    const schema = newSchema()
    const store = await open(schema)
    await admin.query(`
      INSERT INTO ${schema}.threads (id, tenant, parent_id, root_id, client_id, created_at, owner, agent, tags,
        search, lifecycle, waiting, tokens, output_tokens, cached_tokens, cost_usd, unpriced, updated_at, seq,
        change, log_id, epoch, attempts, deaths, survived, on_trial, forked_from)
      SELECT 't' || n, 'tenant ' || n % 4, CASE WHEN n % 3 = 0 THEN 't' || n / 30 END, 't' || n / 30, 'c' || n, n,
        'owner ' || n % 500, 'a', jsonb_build_array('tag ' || n % 1000), '',
        CASE WHEN n % 200 = 0 THEN 'failed' ELSE 'idle' END, (n % 300 = 0)::int, 0, 0, 0, 0, 0, n, 0,
        n, 1000000 + n, 0, 0, 0, 0, false, CASE WHEN n % 50 = 0 THEN 't' || n % 7 END
      FROM generate_series(1, 20000) n;
      INSERT INTO ${schema}.waiting
      SELECT 't' || n, 'q' || n, 's', CASE WHEN n % 9 = 0 THEN 'input' ELSE 'approval' END, n, NULL,
        'tenant ' || n % 4, 'owner ' || n % 500, 'agent ' || n % 100, 't' || n / 30
      FROM generate_series(1, 20000) n;
      ANALYZE ${schema}.threads, ${schema}.waiting;`)
    const tenant = 'tenant 1'
    const after = { at: 9000, id: 't9001' }
    const lists: readonly ThreadQuery[] = [
      {},
      { after },
      { owner: 'owner 1' },
      { owner: 'owner 1', after },
      { lifecycle: 'failed' },
      { isWaiting: true },
      { parentId: 't200' },
      { rootId: 't200' },
      { rootId: 't200', sort: 'oldest' },
      { tag: 'tag 7' },
      { forkedFrom: 't3' },
      { sort: 'created' },
      { sort: 'oldest', after },
    ]
    const questions: readonly WaitingQuery[] = [
      {},
      { owner: 'owner 1' },
      { agent: 'agent 1' },
      { kind: 'input' },
      { rootId: 't200' },
      { threadId: 't201' },
      { interruptId: 'q201' },
      { after: { openedAt: 9000, threadId: 't9000', interruptId: 'q9000' } },
    ]
    const statements = [
      ...lists.map((query) => threadListing(`"${schema}"`, { ...query, tenant, limit: 20 })!),
      ...questions.map((query) => waitingListing(`"${schema}"`, { ...query, tenant, limit: 20 })!),
    ]
    for (const { text, values } of statements) {
      const { rows } = await admin.query<Record<string, string>>(`EXPLAIN ${text}`, [...values!])
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
      expect(plan, text).not.toContain('Seq Scan')
    }
    await store.close()
  }, 60_000)

  test('a role of tenantAccessSql reads the rows of its tenant and no others, in every table', async () => {
    const schema = newSchema()
    const store = await open(schema)
    await fill(store, 'a')
    await fill(store, 'b')
    await store.setSetting('secret', { key: 1 })
    const sql = tenantAccessSql({ schema, role: 'skein_app' })
    await admin.query(sql)
    await admin.query(sql) // may be repeated
    const { rows: tables } = await admin.query<{ name: string }>(
      `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = $1`,
      [schema],
    )
    expect(tables.length).toBeGreaterThan(12)
    const visible = async (tenant: string | undefined) => {
      const found: Record<string, string> = {}
      for (const { name } of tables) {
        await admin.query('BEGIN')
        await admin.query('SET LOCAL ROLE skein_app')
        if (tenant !== undefined)
          await admin.query(`SELECT set_config('skein.tenant', $1, true)`, [tenant])
        const outcome = await admin
          .query<Record<string, unknown>>(`SELECT * FROM ${schema}.${name}`)
          .then(
            ({ rows }) => JSON.stringify(rows.map((row) => ({ ...row, written_at: undefined }))),
            (error: Error) => error.message,
          )
        await admin.query('ROLLBACK')
        found[name] = outcome
      }
      return found
    }
    const [ofA, ofB, ofNobody, ofOdd] = [
      await visible('a'),
      await visible('b'),
      await visible(undefined),
      await visible(`a' OR true --`),
    ]
    const shared = ['threads', 'events', 'blobs', 'blob_chunks', 'blob_names', 'audit_trees']
    for (const { name } of tables) {
      if (![...shared, 'audit', 'user_values', 'waiting'].includes(name)) {
        expect([name, ofA[name]]).toEqual([name, `permission denied for table ${name}`])
        continue
      }
      const rows = name === 'events' ? 2 : 1
      expect(JSON.parse(ofA[name]!), name).toHaveLength(rows)
      expect(JSON.parse(ofB[name]!), name).toHaveLength(rows)
      expect(ofA[name], name).not.toBe(ofB[name])
      expect([ofNobody[name], ofOdd[name]], name).toEqual(['[]', '[]'])
    }
    await admin.query('BEGIN; SET LOCAL ROLE skein_app')
    await expect(admin.query(`UPDATE ${schema}.threads SET title = 'x'`)).rejects.toThrow(
      'permission denied',
    )
    await admin.query('ROLLBACK')
    await store.close()
  }, 60_000)

  test('hot statements use an index when there are many rows', async () => {
    const schema = newSchema()
    const store = await open(schema)
    await add(store, 'one')
    // Many rows by one statement, as a store of a year has them.
    await admin.query(`
      INSERT INTO ${schema}.threads
      SELECT 't' || n, 'tenant ' || n % 50, NULL, 't' || n, 'client ' || n, n, 'owner ' || n % 500, 'a', NULL,
        '[]', NULL, NULL, NULL, '', 'idle', 0, 0, 0, 0, 0, 0, n, 0, n, 1000000 + n, 0,
        CASE WHEN n % 100 = 0 THEN n END, 0, NULL, NULL, 0, 0, false, NULL
      FROM generate_series(1, 20000) n;
      INSERT INTO ${schema}.events SELECT 1000000 + n / 10, n % 10, '{}' FROM generate_series(1, 50000) n;
      INSERT INTO ${schema}.blob_names SELECT 't' || n, n FROM generate_series(1, 20000) n;
      INSERT INTO ${schema}.audit (tree_key, number, request_id, seq, line)
        SELECT n / 10, n % 10, n, 0, '' FROM generate_series(1, 20000) n;
      ANALYZE ${schema}.threads, ${schema}.events, ${schema}.blob_names, ${schema}.audit;`)
    const texts = await statementsOf(schema, async (traced) => {
      await add(traced, 'two', { by: 1 })
      await append(traced, 'two', 1)
      await traced.claim('two', { owner: 'one', leaseMs: 60_000 })
      await traced.renew(['two'], { owner: 'one', leaseMs: 60_000 })
      await traced.release('one', ['two'])
      await traced.release('one')
      await traced.head('t5')
      await traced.events('t15000')
      await traced.due(1e13, 100)
      await traced.nextWake(500)
      await traced.headByClientId('tenant 3', 'client 3')
      await traced.list({ tenant: 'tenant 3' })
      await traced.list({ tenant: 'tenant 3', owner: 'owner 3' })
      await traced.list({ rootId: 't5', sort: 'oldest' })
      await traced.list({ tenant: 'tenant 3', isWaiting: true })
      await traced.list({ parentId: 't5' })
      await traced.treeUsage('t5')
      await traced.audit('t5', { requestId: '7' })
      await traced.erase('two', [])
      await traced.remove('two')
    })
    expect(texts.length).toBeGreaterThan(20)
    const big = /Seq Scan on (?:threads|events|blob_names|audit)\b/
    for (const { text, values } of texts) {
      if (!/^\s*(?:SELECT|UPDATE|DELETE|WITH)/.test(text) || text.includes('generate_series'))
        continue
      const { rows } = await admin.query<{ 'QUERY PLAN': string }>({
        text: `EXPLAIN ${text}`,
        values: values as unknown[],
      })
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n')
      expect(plan, `${text}\n${plan}`).not.toMatch(big)
    }
    await store.close()
  }, 60_000)

  /** Records the statements that a store sends. */
  async function statementsOf(
    schema: string,
    work: (store: PostgresStore) => Promise<void>,
  ): Promise<{ readonly text: string; readonly values: readonly unknown[] }[]> {
    const sent: { text: string; values: readonly unknown[] }[] = []
    const pool = newPool({ connectionString: server.url, max: 4 })
    pool.on('connect', (client) => {
      const query = client.query.bind(client) as (config: unknown) => unknown
      client.query = ((config: { text: string; values?: readonly unknown[] }) => {
        sent.push({ text: config.text, values: config.values ?? [] })
        return query(config)
      }) as typeof client.query
    })
    const store = await postgresStore({ pool, schema })
    sent.length = 0
    await work(store)
    await store.close()
    await pool.end()
    return sent
  }

  test('erasing takes as many statements and rows as the thread has, whatever else there is', async () => {
    const schema = newSchema()
    const store = await open(schema)
    for (const id of ['a', 'b']) {
      await add(store, id)
      await store.commit({
        point: 'test',
        threads: [{ id, append: Array.from({ length: 1200 }, (_, index) => event(index)) }],
      })
    }
    const before = store.counts().roundTrips
    await store.erase('a', [event('gone')])
    expect(store.counts().roundTrips - before).toBe(2)
    expect((await store.events('b')).length).toBe(1200)
    expect((await store.events('a')).length).toBe(1)
    const { rows } = await admin.query<{ count: string }>(`SELECT count(*) FROM ${schema}.events`)
    expect(rows[0]?.count).toBe('1201')
    await store.close()
  })

  test('a content of several chunks comes back as it was, and goes with its thread', async () => {
    const schema = newSchema()
    const store = await open(schema)
    await add(store, 't')
    const bytes = Uint8Array.from({ length: 2_621_440 }, (_, index) => (index * 7) % 251)
    const hash = 'd'.repeat(64)
    await store.commit({
      point: 'test',
      threads: [{ id: 't', append: [event(hash)] }],
      blobs: [{ hash, bytes }],
    })
    expect(Buffer.compare((await store.blob(hash))!, bytes)).toBe(0)
    const count = async () =>
      (await admin.query<{ n: string }>(`SELECT count(*) AS n FROM ${schema}.blob_chunks`)).rows[0]!
        .n
    expect(await count()).toBe('3')
    await store.remove('t')
    expect([await store.blob(hash), await count()]).toEqual([undefined, '0'])
    await store.close()
  })

  test('a content that is erased and written again at the same time is never lost', async () => {
    const schema = newSchema()
    const stores = [await open(schema), await open(schema)]
    const [one, two] = stores as [PostgresStore, PostgresStore]
    const hash = 'e'.repeat(64)
    const write = (store: PostgresStore, id: string) =>
      store.commit({
        point: 'test',
        threads: [{ id, append: [event(hash)] }],
        blobs: [{ hash, bytes: Uint8Array.of(5) }],
      })
    for (let round = 0; round < 25; round++) {
      await add(one, `a${round}`)
      await add(one, `b${round}`)
      await write(one, `a${round}`)
      await Promise.all([one.erase(`a${round}`, []), write(two, `b${round}`)])
      expect((await one.blob(hash))?.[0], `round ${round}`).toBe(5)
      await two.remove(`b${round}`)
      expect(await one.blob(hash)).toBeUndefined()
    }
    await Promise.all(stores.map((store) => store.close()))
  }, 60_000)

  test('contents outside of the database are written before their commit, and swept by age', async () => {
    const kept = new Map<string, Uint8Array>()
    const blobs: BlobStore = {
      async put(hash, bytes) {
        kept.set(hash, bytes.slice())
      },
      get: async (hash) => kept.get(hash),
      async delete(hashes) {
        for (const hash of hashes) kept.delete(hash)
      },
    }
    const store = await open(newSchema(), { blobs })
    await add(store, 't')
    const commit = (hash: string, fence?: number) =>
      store.commit({
        point: 'test',
        threads: [{ id: 't', fence, append: [event(hash)] }],
        blobs: [{ hash, bytes: Uint8Array.of(9) }],
      })
    const [good, refused] = ['1'.repeat(64), '2'.repeat(64)]
    await commit(good)
    await expect(commit(refused, 7)).rejects.toThrow('claimed again')
    expect([(await store.blob(good))?.[0], await store.blob(refused)]).toEqual([9, undefined])
    expect([...kept.keys()].toSorted()).toEqual([good, refused])
    // A young content may belong to a commit that is under way.
    expect(await store.sweepBlobs()).toBe(0)
    expect(await store.sweepBlobs({ keepMs: -1000 })).toBe(1)
    expect([...kept.keys()]).toEqual([good])
    await store.erase('t', [])
    expect(await store.blob(good)).toBeUndefined()
    expect(await store.sweepBlobs({ keepMs: -1000 })).toBe(1)
    expect(kept.size).toBe(0)
    await store.close()
  })

  test('a commit does not wait for one of another thread that waits for its turn', async () => {
    const schema = newSchema()
    const store = await open(schema)
    for (const id of ['a', 'b']) await add(store, id)
    await admin.query(`BEGIN; SELECT 1 FROM ${schema}.threads WHERE id = 'a' FOR UPDATE`)
    const held = append(store, 'a', 1)
    await new Promise((resolve) => setTimeout(resolve, 50))
    const behind = append(store, 'a', 2)
    await new Promise((resolve) => setTimeout(resolve, 20))
    const begun = performance.now()
    await append(store, 'b', 1)
    expect(performance.now() - begun).toBeLessThan(5000) // the lock of a would be waited for longer
    await admin.query('COMMIT')
    expect((await held).seqs.get('a')).toBe(1)
    expect((await behind).seqs.get('a')).toBe(2)
    await store.close()
  })

  test('commits with short contents share transactions, and a refused one leaves no content', async () => {
    const schema = newSchema()
    const store = await open(schema)
    const ids = Array.from({ length: 30 }, (_, index) => `t${index}`)
    await Promise.all(ids.map((id) => add(store, id)))
    const before = store.counts()
    const hashOf = (index: number): string => String(index).padStart(64, '0')
    const commits = ids.map((id, index) =>
      store.commit({
        point: 'test',
        // Every third commit is refused, because nobody has claimed its thread.
        threads: [{ id, fence: index % 3 === 0 ? 7 : undefined, append: [event(hashOf(index))] }],
        blobs: [{ hash: hashOf(index), bytes: new Uint8Array(index).fill(index) }],
        audit: [{ tree: id, requestId: `r${index}`, seq: 0, line: 'a' }],
      }),
    )
    const outcomes = await Promise.allSettled(commits)
    expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(10)
    expect(store.counts().transactions - before.transactions).toBeLessThanOrEqual(3)
    for (const [index, { status }] of outcomes.entries()) {
      const bytes = status === 'rejected' ? undefined : new Uint8Array(index).fill(index)
      const found = await store.blob(hashOf(index))
      expect(found && [...found], String(index)).toEqual(bytes && [...bytes])
    }
    const { rows } = await admin.query(`SELECT count(*)::int AS n FROM ${schema}.blobs`)
    expect(rows).toEqual([{ n: 20 }])
    const [one, two] = ids as [string, string]
    // The same content again, by another thread: its bytes are there once, and it goes with the last of them.
    await store.commit({
      point: 'test',
      threads: [{ id: one, append: [event(hashOf(1))] }],
      blobs: [{ hash: hashOf(1), bytes: Uint8Array.of(1) }],
    })
    await store.erase(two, [])
    expect(await store.blob(hashOf(1))).toEqual(Uint8Array.of(1))
    await store.erase(one, [])
    expect(await store.blob(hashOf(1))).toBeUndefined()
    await store.close()
  })

  test('two nodes that begin the audit log of one tree at once lose no line', async () => {
    const schema = newSchema()
    const stores = [await open(schema), await open(schema)]
    const line = (store: PostgresStore, tree: string, number: number) =>
      store.commit({
        point: 'test',
        threads: [],
        audit: [{ tree, requestId: `${tree} ${number}`, seq: 0, line: String(number) }],
      })
    for (let round = 0; round < 15; round++) {
      const tree = `tree ${round}`
      await Promise.all([0, 1, 2, 3].map((number) => line(stores[number % 2]!, tree, number)))
      const lines = await stores[0]!.audit(tree)
      expect(lines.map(({ index }) => index)).toEqual([0, 1, 2, 3])
      expect(lines.map((one) => one.line).toSorted()).toEqual(['0', '1', '2', '3'])
    }
    await Promise.all(stores.map((store) => store.close()))
  })

  test('stores that share a pool do not mix up their prepared statements', async () => {
    const pool = newPool({ connectionString: server.url, max: 1, pipeline: true })
    const one = await postgresStore({ pool, schema: newSchema() })
    await add(one, 't')
    const two = await postgresStore({ pool, schema: newSchema() })
    await add(two, 't')
    await append(two, 't', 2)
    await append(one, 't', 1)
    expect([await valuesOf(one, 't'), await valuesOf(two, 't')]).toEqual([[1], [2]])
    await Promise.all([one.close(), two.close()])
    await pool.end()
  })

  test('commits that come together share transactions and round trips', async () => {
    const store = await open(newSchema())
    const ids = Array.from({ length: 60 }, (_, index) => `t${index}`)
    await Promise.all(ids.map((id) => add(store, id)))
    const before = store.counts()
    await Promise.all(ids.map((id) => append(store, id, 1)))
    const { roundTrips, transactions } = store.counts()
    expect(transactions - before.transactions).toBeLessThanOrEqual(3)
    expect(roundTrips - before.roundTrips).toBeLessThanOrEqual(6)
    const single = store.counts().roundTrips
    await append(store, 't0', 2)
    expect(store.counts().roundTrips - single).toBe(2)
    await store.close()
  })

  test('the statements of a round trip are one write to the socket', async () => {
    const pool = newPool({ connectionString: server.url, max: 1, pipeline: true })
    let writes = 0
    pool.on('connect', (client) => {
      const { stream } = (client as unknown as { connection: { stream: Socket } }).connection
      for (const name of ['_write', '_writev'] as const) {
        const write = stream[name] as (...args: unknown[]) => unknown
        stream[name] = (...args: unknown[]) => {
          writes += 1
          return write.apply(stream, args)
        }
      }
    })
    const store = await postgresStore({ pool, schema: newSchema() })
    await add(store, 't')
    await append(store, 't', 1)
    writes = 0
    const before = store.counts().roundTrips
    await append(store, 't', 2)
    expect(store.counts().roundTrips - before).toBe(2)
    expect(writes).toBe(2)
    await store.close()
    await pool.end()
  })
})
