import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, expect, test } from 'vitest'
import { valueSet } from '../testing/contract.ts'
import { migrate, migrations, rowSum, type StoreMigration } from './migrations.ts'
import { sqliteStore } from './sqlite-store.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-migrations-'))
const version1 = readFileSync(join(import.meta.dirname, '../../test/fixtures/store-v1.sql'), 'utf8')

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
