import { fork } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, test } from 'vitest'
import { manualClock, type Clock } from '@skein/base'
import { type SpentStore, memorySpent } from '../contract/spent-store.ts'
import { fileSpent } from './file-spent-node.ts'
import { sqliteSpent } from './sqlite-spent-node.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-spent-'))
afterAll(() => rmSync(folder, { recursive: true }))
let count = 0
const fresh = (): string => join(folder, String(count++))

function describeSpentStore(name: string, open: (clock: Clock) => SpentStore): void {
  describe(name, () => {
    test('gives each token to one caller', async () => {
      const store = open(manualClock())
      expect(await store.spend('a', 1e15)).toBe(true)
      expect(await store.spend('a', 1e15)).toBe(false)
      expect(await store.spend('b', 1e15)).toBe(true)
      const tries = await Promise.all(Array.from({ length: 50 }, () => store.spend('c', 1e15)))
      expect(tries.filter(Boolean)).toHaveLength(1)
    })

    test('takes any text as an id', async () => {
      const store = open(manualClock())
      for (const id of [
        '../../etc/passwd',
        "x'; drop table uaicp_spent; --",
        '\n',
        'ü'.repeat(300),
      ]) {
        expect(await store.spend(id, 1e15)).toBe(true)
        expect(await store.spend(id, 1e15)).toBe(false)
      }
    })
  })
}

describeSpentStore('memory', (clock) => memorySpent({ clock }))
describeSpentStore('file', (clock) => fileSpent({ dir: fresh(), clock }))
describeSpentStore('SQLite', (clock) => sqliteSpent({ database: ':memory:', clock }))

test('what is long over is swept, what is not stays', async () => {
  const clock = manualClock(1000)
  const dir = fresh()
  const stores = [fileSpent({ dir, clock }), sqliteSpent({ database: ':memory:', clock })]
  for (const store of stores) {
    await store.spend('old', 2000)
    await store.spend('new', 900_000)
  }
  clock.advance(100_000)
  for (const store of stores) {
    expect(store.prune()).toBe(1)
    expect(await store.spend('new', 900_000)).toBe(false)
  }
  expect(readdirSync(dir).filter((name) => name.length === 64)).toHaveLength(1)
})

test('a spent token stays spent when it was swept and the clock is set back', async () => {
  const clock = manualClock(1000)
  const dir = fresh()
  const file = fileSpent({ dir, clock })
  const sqlite = sqliteSpent({ database: ':memory:', clock })
  const stores = [memorySpent({ clock }), file, sqlite]
  for (const store of stores) expect(await store.spend('a', 60_000)).toBe(true)
  clock.advance(7_200_000)
  // The memory store sweeps while it spends another token.
  for (const store of stores) expect(await store.spend('b', 9e15)).toBe(true)
  expect([file.prune(), sqlite.prune()]).toEqual([1, 1])
  clock.advance(-7_200_000)
  expect([file.prune(), sqlite.prune()]).toEqual([0, 0])
  for (const [index, store] of [...stores, fileSpent({ dir, clock })].entries()) {
    expect(await store.spend('a', 60_000)).toBe(false)
    expect(await store.spend(`new ${index}`, 9e15)).toBe(true)
  }
})

test('UAICP-24 a token counts as over only after its last millisecond, in every store', async () => {
  const clock = manualClock(2000)
  const file = fileSpent({ dir: fresh(), clock })
  const sqlite = sqliteSpent({ database: ':memory:', clock })
  for (const store of [file, sqlite]) {
    expect(await store.spend('ends now', 2000)).toBe(true)
    expect(store.prune()).toBe(0)
  }
  clock.advance(1)
  for (const store of [file, sqlite]) expect(store.prune()).toBe(1)
  clock.advance(-1)
  const memory = memorySpent({ clock })
  clock.advance(1)
  expect(await memory.spend('first', 9e15)).toBe(true)
  for (const store of [memory, file, sqlite]) {
    expect(await store.spend('at the end', 2001)).toBe(true)
    expect(await store.spend('over', 2000)).toBe(false)
  }
})

test('UAICP-24 the memory store forgets what is over, once a minute, and nothing else', async () => {
  const clock = manualClock(0)
  const store = memorySpent({ clock })
  expect(await store.spend('a', 60_000)).toBe(true)
  expect(await store.spend('b', 59_999)).toBe(true)
  clock.advance(60_000)
  expect(await store.spend('a', 60_000)).toBe(false)
  expect(await store.spend('b', 59_999)).toBe(false)
  expect(await store.spend('c', 60_000)).toBe(true)
})

test('UAICP-24 nobody else can read the files, other files stay, and a broken folder is an error', async () => {
  const clock = manualClock(1000)
  const dir = join(fresh(), 'deep')
  const store = fileSpent({ dir, clock })
  writeFileSync(join(dir, 'notes.txt'), '1')
  await store.spend('a', 2000)
  expect(store.prune()).toBe(0)
  const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)
  expect(modeOf(dir)).toBe('700')
  const names = readdirSync(dir).filter((name) => name !== 'notes.txt')
  expect(names).toHaveLength(2)
  for (const name of names) expect(modeOf(join(dir, name)), name).toBe('600')
  clock.advance(5000)
  expect(store.prune()).toBe(1)
  expect(readdirSync(dir).toSorted()).toEqual(['notes.txt', 'pruned'])
  // A store that cannot tell whether a token was spent does not say that it was not.
  rmSync(join(dir, 'pruned'))
  mkdirSync(join(dir, 'pruned'))
  await expect(store.spend('b', 9e15)).rejects.toThrow()
  rmSync(dir, { recursive: true })
  await expect(store.spend('b', 9e15)).rejects.toThrow('ENOENT')
})

test('UAICP-24 a database of its own is a file that several processes can use; the empty id is none', async () => {
  const path = fresh()
  const store = sqliteSpent({ database: path })
  expect(await store.spend('', 9e15)).toBe(false)
  expect(await store.spend('a', 9e15)).toBe(true)
  const other = new DatabaseSync(path)
  expect(other.prepare('pragma journal_mode').get()).toEqual({ journal_mode: 'wal' })
  expect(other.prepare('select jti from uaicp_spent').all()).toEqual([{ jti: 'a' }])
  other.close()
  store.close()
  await expect(store.spend('b', 9e15)).rejects.toThrow()
})

test('a database of the caller takes the spending into its own transaction', async () => {
  const database = new DatabaseSync(':memory:')
  const store = sqliteSpent({ database, table: 'spent' })
  database.exec('begin')
  expect(await store.spend('a', 1e15)).toBe(true)
  database.exec('rollback')
  expect(await store.spend('a', 1e15)).toBe(true)
  store.close()
  expect(database.isOpen).toBe(true)
  expect(() => sqliteSpent({ database, table: 'a; drop' })).toThrow('table name')
})

for (const kind of ['file', 'sqlite']) {
  test(`two processes on one ${kind} store: each token goes to exactly one`, async () => {
    const path = fresh()
    const tokens = 60
    const start = (): ReturnType<typeof fork> =>
      fork(new URL('../../test/spend-process.ts', import.meta.url), [kind, path, String(tokens)], {
        execArgv: ['--conditions=@skein/source', '--disable-warning=ExperimentalWarning'],
      })
    const next = (child: ReturnType<typeof fork>): Promise<unknown> =>
      new Promise((resolve, reject) =>
        child
          .once('message', resolve)
          .once('error', reject)
          .once('exit', (code) => code && reject(new Error(`The process ended with ${code}.`))),
      )
    const children = [start(), start()]
    await Promise.all(children.map(next))
    const results = children.map(next)
    for (const child of children) child.send('go')
    const won = (await Promise.all(results)).flat() as number[]
    expect(won.sort((a, b) => a - b)).toEqual(Array.from({ length: tokens }, (_, id) => id))
  })
}
