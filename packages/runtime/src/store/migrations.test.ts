import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, expect, test } from 'vitest'
import { valueSet } from '../testing/contract.ts'
import { migrate, migrations, type StoreMigration } from './migrations.ts'
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
    tags: ['kept'],
    clientId: 'client-1',
    lifecycle: 'idle',
    waiting: 0,
    tokens: 7,
    costUsd: 0.25,
    createdAt: 1763000000000,
    updatedAt: 1763000001000,
    seq: 2,
    epoch: 1,
    wakeAt: 1763000009000,
    attempts: 1,
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
  await store.erase('old', [])
  expect(await store.blob(hash)).toBeUndefined()
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
  const broken = {
    version: newest + 2,
    sql: 'CREATE TABLE extra (id TEXT); INSERT INTO nowhere VALUES (1)',
  }
  expect(() => migrate(database, 'db', [...migrations, two, broken])).toThrow(/nowhere/)
  expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: newest + 1 })
  expect(JSON.stringify(schemaOf(database))).not.toContain('extra')
  migrate(database, 'db', [...migrations, two, three])
  expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: newest + 2 })
})
