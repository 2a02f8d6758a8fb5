import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, expect, test } from 'vitest'
import { valueSet } from '../../testing/contract.ts'
import type { RuntimeEvent } from '../../contract/event.ts'
import { newThread } from '../../testing/contract.ts'
import { packText, rowSum } from './packed-text.ts'
import { readPlans } from '../../../test/read-plans.ts'
import { migrate, migrations, type StoreMigration } from './migrations.ts'
import { loadSqliteStore } from './sqlite-import.ts'
import { sqliteStore } from './sqlite-store.ts'
import { readSqliteStore } from './sqlite-verify.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-migrations-'))
const version1 = readFileSync(
  join(import.meta.dirname, '../../../test/fixtures/store-v1.sql'),
  'utf8',
)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

function schemaOf(database: DatabaseSync): unknown {
  return database.prepare('SELECT type, name, sql FROM sqlite_schema ORDER BY name').all()
}

test('a store that version 1 wrote opens with all that is in it', async () => {
  const path = join(folder, 'v1.db')
  const old = new DatabaseSync(path)
  old.exec(version1)
  old.close()
  const store = sqliteStore({ path })
  expect(await store.headByClientId('acme', 'client-1')).toEqual({
    id: 'old',
    tenant: 'acme',
    owner: 'ada',
    agent: 'helper',
    parentId: null,
    rootId: 'old',
    title: 'From version 1',
    firstWords: null,
    forkedFrom: null,
    tags: ['kept'],
    tools: [],
    grantedUntil: null,
    clientId: 'client-1',
    lifecycle: 'idle',
    waiting: 0,
    tokens: 7,
    outputTokens: 0,
    cachedTokens: 0,
    costUsd: 0.25,
    unpriced: 0,
    createdAt: 1763000000000,
    updatedAt: 1763000001000,
    seq: 2,
    change: 0,
    logId: 1,
    epoch: 1,
    wakeAt: 1763000009000,
    attempts: 0,
    lease: null,
  })
  const [first, second] = await store.events('old')
  const hash = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'
  expect(first).toEqual({ seq: 1, event: valueSet(hash, 1763000000500) })
  expect(second?.event).toMatchObject({ key: 'ä', value: { deep: [1, null] } })
  expect(Buffer.from((await store.blob(hash)) ?? []).toString()).toBe('test')
  expect(await store.audit('old')).toEqual([{ index: 0, line: '{"n":0}' }])
  expect(await store.setting('key')).toEqual({ kid: '1' })
  const spent = [{ jti: 'used', exp: 1 }]
  await expect(store.commit({ point: 'test', threads: [], spent })).rejects.toMatchObject({
    code: 'TOKEN_SPENT',
  })
  expect(await store.check()).toEqual([])
  expect(await store.totals()).toEqual({
    threads: new Map([['idle', 1]]),
    tokens: 7,
    costUsd: 0.25,
  })
  await store.erase('old', [])
  expect(await store.blob(hash)).toBeUndefined()
  await store.close()
})

test('a store that version 2 wrote keeps its events, audit lines, checksums and log ids', async () => {
  const path = join(folder, 'v2.db')
  const old = new DatabaseSync(path)
  migrate(old, path, migrations.slice(0, 2))
  old.function('row_sum', (key, number, content) =>
    rowSum(String(key), Number(number), String(content)),
  )
  const insert =
    old.prepare(`INSERT INTO threads (id, tenant, agent, root_id, tags, search, lifecycle, waiting,
    tokens, cost_usd, created_at, updated_at, seq, epoch, attempts, log_id)
    VALUES (?1, 't', 'a', ?1, '[]', ?1 || char(10) || char(10) || 'a' || char(10), 'idle', 0, 0, 0, 0, 0, ?2, 0, 0, ?3)`)
  // The order of the ids is not the order of the logs, and one log has no events.
  for (const [id, seq, logId] of [
    ['x', 3, 70],
    ['y', 2, 8],
    ['z', 0, 9],
  ] as const) {
    insert.run(id, seq, logId)
    for (let number = 1; number <= seq; number++) {
      const event = valueSet(`${id} ${number}`, number)
      old
        .prepare(
          'INSERT INTO events (thread_id, seq, at, type, json, sum) VALUES (?1, ?2, ?3, ?4, ?5, row_sum(?1, ?2, ?5))',
        )
        .run(id, number, event.at, event.type, JSON.stringify(event))
      old
        .prepare(
          'INSERT INTO audit (tree, idx, request_id, seq, line, sum) VALUES (?1, ?2, ?3, ?2, ?4, row_sum(?1, ?2, ?4))',
        )
        .run(id, number - 1, `r-${id}`, `{"${id}":${number}}`)
    }
  }
  old.exec(`UPDATE counters SET value = 70 WHERE name = 'log_id';
    INSERT INTO counters VALUES ('threads idle', 3)`)
  old.close()
  const store = sqliteStore({ path })
  expect(await store.check()).toEqual([])
  expect((await store.head('x'))?.logId).toBe(70)
  expect(await store.events('y')).toEqual([
    { seq: 1, event: valueSet('y 1', 1) },
    { seq: 2, event: valueSet('y 2', 2) },
  ])
  expect(await store.events('x', { after: 2 })).toEqual([{ seq: 3, event: valueSet('x 3', 3) }])
  expect(await store.events('z')).toEqual([])
  expect(await store.audit('x', { from: 1, requestId: 'r-x' })).toEqual([
    { index: 1, line: '{"x":2}' },
    { index: 2, line: '{"x":3}' },
  ])
  const audit = [{ tree: 'x', requestId: 'r-x', seq: 3, line: '{"x":4}' }]
  const append = [valueSet('z 1', 1)]
  expect(await store.commit({ point: 'test', threads: [{ id: 'z', append }], audit })).toEqual({
    seqs: new Map([['z', 1]]),
    auditFrom: 3,
  })
  await store.remove('y')
  expect(await store.check()).toEqual([])
  expect((await store.events('x')).length).toBe(3)
  await store.close()
})

test('leases that version 4 wrote have no address, and new ones may have one', async () => {
  const path = join(folder, 'v4.db')
  const old = new DatabaseSync(path)
  migrate(old, path, migrations.slice(0, 4))
  old.exec(`INSERT INTO threads (id, tenant, agent, root_id, tags, search, lifecycle, waiting, tokens, cost_usd,
    created_at, updated_at, seq, epoch, attempts, log_id, lease_owner, lease_until)
    VALUES ('x', 't', 'a', 'x', '[]', 'x' || char(10) || char(10) || 'a' || char(10), 'idle', 0, 0, 0, 0, 0, 0, 1, 0, 1,
    'before', 5);
    UPDATE counters SET value = 1 WHERE name = 'log_id'; INSERT INTO counters VALUES ('threads idle', 1)`)
  old.close()
  const store = sqliteStore({ path })
  expect(await store.check()).toEqual([])
  const lease = (await store.head('x'))?.lease
  expect(lease).toEqual({ owner: 'before', until: 0, deaths: 0, survived: 0, isQuarantined: false })
  await store.claim('x', { owner: 'now', leaseMs: 1000, address: 'http://node' })
  expect((await store.head('x'))?.lease).toMatchObject({ owner: 'now', address: 'http://node' })
  await store.close()
})

/** A message with calls, as it is stored. */
const callsOf = (...names: string[]): string =>
  JSON.stringify({
    type: 'message_added',
    at: '2026-01-01T00:00:00.000Z',
    turnId: 't',
    side: 'a',
    message: {
      id: 'm',
      type: 'assistant',
      timestamp: '',
      content: [{ type: 'text', text: '"toolName":"never"' }],
      toolCalls: names.map((toolName) => ({ toolCallId: toolName, toolName, arguments: {} })),
    },
  })

test('the calls in a store of version 7 are found after the step to version 8, from texts and packed rows', async () => {
  const path = join(folder, 'v7.db')
  const old = new DatabaseSync(path)
  migrate(old, path, migrations.slice(0, 7))
  const rows = [
    callsOf('refund', 'look'),
    packText(callsOf('refund', 'pay')),
    packText('{"type":"x"}'),
  ]
  for (const [id, parent, log] of [
    ['root', null, 1],
    ['child', 'root', 2],
    ['none', null, 3],
  ] as const)
    old
      .prepare(
        `INSERT INTO threads (id, tenant, agent, parent_id, root_id, tags, search, lifecycle, waiting, tokens,
          cost_usd, created_at, updated_at, seq, epoch, attempts, log_id)
        VALUES (?1, 't', 'a', ?2, coalesce(?2, ?1), '[]', '', 'idle', 0, 0, 0, 0, 0, ?3, 1, 0, ?4)`,
      )
      .run(id, parent, id === 'child' ? rows.length + 1 : 0, log)
  const add = old.prepare('INSERT INTO events (id, json, sum) VALUES ((2 << 32) | ?1, ?2, ?3)')
  for (const [index, row] of rows.entries())
    add.run(index + 1, row, rowSum('child', index + 1, row))
  add.run(rows.length + 1, Uint8Array.of(0xff, 0xfe, 0xfd), 0) // damage does not stop the step
  old.close()
  const store = sqliteStore({ path })
  const found = async (tool: string) => (await store.list({ tool })).map(({ id }) => id).sort()
  expect((await store.head('child'))?.tools.toSorted()).toEqual(['look', 'pay', 'refund'])
  expect(await found('refund')).toEqual(['child', 'root'])
  expect(await found('pay')).toEqual(['child', 'root'])
  expect(await found('never')).toEqual([])
  expect((await store.head('none'))?.tools).toEqual([])
  await store.close()
})

test('a search by tool reads the index and no log, also with 10,000 threads', async () => {
  const path = join(folder, 'tools.db')
  const store = sqliteStore({ path })
  const event = (name: string): RuntimeEvent => JSON.parse(callsOf('look', name)) as RuntimeEvent
  for (let at = 0; at < 10_000; at += 500)
    await store.commit({
      point: 'test',
      threads: Array.from({ length: 500 }, (_, index) => ({
        id: `t${at + index}`,
        create: newThread(`t${at + index}`),
        append: [event((at + index) % 1000 === 0 ? 'rare' : 'common')],
      })),
    })
  const cpuMs = async (tool: string): Promise<number> => {
    const before = process.cpuUsage()
    expect(await store.list({ tool, parentId: null, tenant: 'acme', limit: 50 })).toHaveLength(
      tool === 'rare' ? 10 : 50,
    )
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1000
  }
  await cpuMs('rare') // prepares the statement
  expect(await cpuMs('rare')).toBeLessThan(20)
  expect(await cpuMs('look')).toBeLessThan(200)
  const plans = await readPlans(path, () =>
    store.list({ tool: 'rare', parentId: null, tenant: 'acme' }),
  )
  const steps = plans.flatMap((plan) => plan.steps)
  expect(steps.filter((step) => step.includes('thread_tools'))).not.toEqual([])
  for (const step of steps) if (step.includes('thread_tools')) expect(step).toMatch(/^SEARCH/)
  expect(steps.join()).not.toContain('SCAN threads')
  await store.close()
})

test('the questions in logs of version 8 wait after the step to version 9, also when a crash stops the first attempt', async () => {
  const path = join(folder, 'v8.db')
  const store = sqliteStore({ path })
  const at = new Date(5).toISOString()
  const asks = (id: string, toolCallId: string, kind: 'approval' | 'input', request = {}) => {
    const interrupt = { id, toolCallId, kind, request }
    return { type: 'interrupt_opened', at, turnId: 't', interrupt } as const
  }
  const created = { type: 'thread_created', at, agent: 'helper', depth: 0, version: 1 } as const
  const answer = { type: 'approve' } as const
  const logs: Readonly<Record<string, readonly RuntimeEvent[]>> = {
    one: [
      { ...created, threadId: 'one' },
      asks('q1', 'c1', 'approval'),
      asks('q2', 'c2', 'approval'),
      { type: 'interrupt_answered', at, interruptId: 'q1', answer },
    ],
    // In logs of the first version, a question about a call in doubt has the kind of a question to a client.
    two: [{ ...created, threadId: 'two' }, asks('q3', 'c1', 'input', { type: 'in_doubt' })],
    none: [{ ...created, threadId: 'none' }],
  }
  for (const [id, append] of Object.entries(logs))
    await store.commit({
      point: 'test',
      threads: [
        { id, create: newThread(id, { owner: 'ada', tags: ['x', 'x'] }), append },
        { id, head: { waiting: append.length > 1 ? 1 : 0 } },
      ],
    })
  await store.close()
  const old = new DatabaseSync(path)
  old.exec(`DROP TABLE waiting; DROP TRIGGER thread_tags_added; DROP TRIGGER thread_tags_changed;
    DROP TABLE thread_tags; DROP INDEX thread_tools_by_root; DROP INDEX threads_by_owner;
    DROP INDEX threads_by_lifecycle; PRAGMA user_version = 8`)
  const step = migrations.at(-1)!
  expect(step.version).toBe(9)
  const crashes = {
    ...step,
    fill(database: DatabaseSync) {
      step.fill?.(database)
      throw new Error('The process dies.')
    },
  }
  expect(() => migrate(old, path, [...migrations.slice(0, -1), crashes])).toThrow('dies')
  expect(old.prepare('PRAGMA user_version').get()).toEqual({ user_version: 8 })
  old.close()
  const again = sqliteStore({ path })
  expect(
    (await again.waiting({ tenant: 'acme', owner: 'ada' })).map(
      ({ interruptId, kind, threadId }) => [threadId, interruptId, kind],
    ),
  ).toEqual([
    ['one', 'q2', 'approval'],
    ['two', 'q3', 'in_doubt'],
  ])
  expect((await again.list({ tenant: 'acme', tag: 'x' })).map(({ id }) => id).sort()).toEqual([
    'none',
    'one',
    'two',
  ])
  expect(await again.check()).toEqual([])
  await again.close()
  const copy = join(folder, 'v9-copy.db')
  const rows = readSqliteStore(path)
  await loadSqliteStore(copy, rows.rows())
  await rows.close()
  const copied = sqliteStore({ path: copy })
  expect((await copied.waiting({})).map(({ interruptId }) => interruptId)).toEqual(['q2', 'q3'])
  await copied.close()
})

test('a step that was released has not been changed since', () => {
  const [now, then] = [new DatabaseSync(':memory:'), new DatabaseSync(':memory:')]
  migrate(now, 'now', migrations.slice(0, 1))
  then.exec(version1)
  expect(schemaOf(now)).toEqual(schemaOf(then))
})

const newest = migrations.at(-1)!.version

const two: StoreMigration = {
  version: newest + 1,
  sql: `ALTER TABLE threads ADD COLUMN color TEXT NOT NULL DEFAULT 'grey';
        UPDATE threads SET color = 'red' WHERE owner = 'ada';`,
}
const three: StoreMigration = { version: newest + 2, sql: 'CREATE TABLE extra (id TEXT)' }

test('an older database goes through every step it lacks, once, and keeps its rows', () => {
  const database = new DatabaseSync(':memory:')
  database.exec(version1)
  const steps = [...migrations, two, three]
  migrate(database, 'db', steps)
  migrate(database, 'db', steps)
  expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: newest + 2 })
  expect(database.prepare('SELECT id, title, color FROM threads').all()).toEqual([
    { id: 'old', title: 'From version 1', color: 'red' },
  ])
  const fresh = new DatabaseSync(':memory:')
  migrate(fresh, 'db', steps)
  expect(schemaOf(fresh)).toEqual(schemaOf(database))
  expect(() => migrate(database, 'db', migrations)).toThrow(
    `has version ${newest + 2}; this program knows ${newest}`,
  )
})

test('a step that fails leaves the database as it was before that step', () => {
  const database = new DatabaseSync(':memory:')
  database.exec(version1)
  const sql = 'CREATE TABLE extra (id TEXT); INSERT INTO nowhere VALUES (1)'
  const broken = { version: newest + 2, sql }
  expect(() => migrate(database, 'db', [...migrations, two, broken])).toThrow(/nowhere/)
  expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: newest + 1 })
  expect(JSON.stringify(schemaOf(database))).not.toContain('extra')
  migrate(database, 'db', [...migrations, two, three])
  expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: newest + 2 })
})
