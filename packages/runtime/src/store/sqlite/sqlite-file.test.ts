import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { GroupCommit } from './group-commit.ts'

const NORMAL = 1
const FULL = 2

function open() {
  const database = new DatabaseSync(':memory:')
  database.exec('PRAGMA synchronous = FULL; CREATE TABLE rows (id INTEGER PRIMARY KEY)')
  const writes = new GroupCommit(database)
  const synchronous = (): unknown => database.prepare('PRAGMA synchronous').get()?.['synchronous']
  const add = (id: number) => (): unknown => {
    database.prepare('INSERT INTO rows VALUES (?)').run(id)
    return synchronous()
  }
  const ids = (): unknown[] =>
    database
      .prepare('SELECT id FROM rows')
      .all()
      .map(({ id }) => id)
  return { writes, add, ids, synchronous }
}

test('only a group without a durable write is spared the wait for the disk', async () => {
  const { writes, add, synchronous } = open()
  expect(await writes.write(add(1), { isLazy: true })).toBe(NORMAL)
  expect(synchronous()).toBe(FULL)
  expect(await writes.write(add(2))).toBe(FULL)
  const together = [writes.write(add(3), { isLazy: true }), writes.write(add(4))]
  expect(await Promise.all(together)).toEqual([FULL, FULL])
  await expect(writes.write(add(1), { isLazy: true })).rejects.toThrow(/UNIQUE/)
  expect(synchronous()).toBe(FULL)
})

test('a write that fails leaves nothing, alone or among others, and takes no other with it', async () => {
  const { writes, add, ids } = open()
  const half = (): void => {
    add(7)()
    throw new Error('no')
  }
  await expect(writes.write(half)).rejects.toThrow('no')
  expect(ids()).toEqual([])
  const told = await Promise.allSettled([
    writes.write(add(1)),
    writes.write(half),
    writes.write(add(2)),
  ])
  expect(told.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(ids()).toEqual([1, 2])
})
