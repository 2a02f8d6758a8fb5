import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sha256Hex } from '@skein/base'
import { newThread, valueSet } from '../../testing/contract.ts'
import { sqliteStore } from './sqlite-store.ts'
import { verifyStore } from './sqlite-verify.ts'
import { isStoreError } from '../store-error.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-damage-'))
const whole = join(folder, 'whole.db')
const IDS = ['a', 'b', 'c']
/** The thread and the number of a row of `events`, in SQL. */
const LOG = '(SELECT threads.id FROM threads WHERE log_id = events.id >> 32)'
const SEQ = '(id & 4294967295)'
const bytes = Buffer.from('a file of thread a')
const HASH = sha256Hex(bytes)
/** What the whole store says. */
let written: Awaited<ReturnType<typeof contentsOf>>
let count = 0

beforeAll(async () => {
  const store = sqliteStore({ path: whole })
  for (const id of IDS) {
    const append = Array.from({ length: 30 }, (_, index) =>
      valueSet(index === 3 && id === 'a' ? HASH : `${id} said ${index} ${'text '.repeat(index)}`),
    )
    const blobs = id === 'a' ? [{ hash: HASH, bytes }] : []
    const audit = [{ tree: id, requestId: `r-${id}`, seq: 0, line: `{"of":"${id}"}` }]
    const threads = [{ id, create: newThread(id, { title: `Thread ${id}` }), append }]
    await store.commit({ point: 'test', threads, blobs, audit })
  }
  await store.setSetting('key', { kid: 'one' })
  await store.close()
  written = await contentsOf(whole)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Everything that can be read from a store; the code of the error where something cannot. */
async function contentsOf(path: string): Promise<Record<string, unknown>> {
  const store = sqliteStore({ path })
  const contents: Record<string, unknown> = {}
  const read = async (name: string, value: Promise<unknown>): Promise<void> => {
    contents[name] = await value.catch((error: unknown) => {
      if (isStoreError(error)) return error.code
      throw error
    })
  }
  try {
    for (const id of IDS) {
      await read(`events of ${id}`, store.events(id))
      await read(`audit of ${id}`, store.audit(id))
    }
    await read('blob', store.blob(HASH))
    await read('setting', store.setting('key'))
    await read('heads', store.list({}))
  } finally {
    await store.close()
  }
  return contents
}

/** A copy of the store, changed by SQL. */
function changed(sql: string): string {
  const path = join(folder, `${count++}.db`)
  copyFileSync(whole, path)
  const database = new DatabaseSync(path)
  database.exec(sql)
  database.close()
  return path
}

describe('a row that is not what was written', () => {
  test.each([
    [
      'another text',
      `UPDATE events SET json = CAST(replace(json, 'said 7', 'said 8') AS BLOB) WHERE ${SEQ} = 8`,
    ],
    ['a text that is not JSON', `UPDATE events SET json = substr(json, 2) WHERE ${SEQ} = 8`],
    [
      'the text of another event',
      `UPDATE events SET json = (SELECT json FROM events AS other
      WHERE other.id = events.id + 1) WHERE ${SEQ} = 8`,
    ],
  ])('%s is refused with the thread and the number of the event', async (_title, sql) => {
    const path = changed(sql)
    const store = sqliteStore({ path })
    await expect(store.events('b')).rejects.toMatchObject({
      name: 'StoreError',
      code: 'STORE_CORRUPT',
      message: 'Event 8 of thread b is damaged: its checksum is wrong.',
    })
    expect((await store.events('b', { limit: 7 })).length).toBe(7)
    await store.close()
    expect(verifyStore(path).problems).toContain(
      'Event 8 of thread b is damaged: its checksum is wrong.',
    )
  })

  test.each([
    [
      'an audit line',
      "UPDATE audit SET line = '{}' WHERE id >> 32 = (SELECT key FROM audit_trees WHERE tree = 'c')",
      'audit of c',
      'Line 0 of',
    ],
    ['a content', "UPDATE blobs SET bytes = x'00'", 'blob', `The content ${HASH}`],
    ['the tags of a head', "UPDATE threads SET tags = '[' WHERE id = 'b'", 'heads', 'of thread b'],
    ['a setting', "UPDATE settings SET json = '{'", 'setting', 'The setting key'],
  ])('%s is refused and found', async (_title, sql, name, problem) => {
    const path = changed(sql)
    const contents = await contentsOf(path)
    expect(contents).toEqual({ ...written, [name]: 'STORE_CORRUPT' })
    expect(verifyStore(path).problems).toEqual([expect.stringContaining(problem)])
  })

  test.each([
    ["UPDATE threads SET title = 'Thread x' WHERE id = 'b'", 'The head of thread b is damaged'],
    ["UPDATE threads SET seq = 31 WHERE id = 'b'", 'Thread b has 30 events, but its head says 31.'],
    [`DELETE FROM events WHERE ${LOG} = 'b' AND ${SEQ} = 4`, 'Event 4 of thread b is missing.'],
    [`UPDATE events SET sum = 1 WHERE ${LOG} = 'b' AND ${SEQ} = 4`, 'Event 4 of thread b is'],
    [`UPDATE events SET id = id + (9 << 32) WHERE ${LOG} = 'b'`, 'A row of events belongs to no'],
    ["DELETE FROM threads WHERE id = 'b'", 'The counter "threads idle" is wrong.'],
    [
      "PRAGMA foreign_keys = OFF; DELETE FROM threads WHERE id = 'b'",
      'events belongs to no thread',
    ],
    [`UPDATE blobs SET hash = '${'0'.repeat(64)}'`, 'The content 0000'],
  ])('verify finds what no read notices: %s', (sql, problem) => {
    expect(verifyStore(changed(sql)).problems).toContainEqual(expect.stringContaining(problem))
  })
})

test('a whole store is reported as whole, also while its owner uses it', async () => {
  const counts = { threads: 3, events: 90, auditLines: 3, blobs: 1 }
  expect(verifyStore(whole)).toEqual({ problems: [], ...counts })
  const store = sqliteStore({ path: whole })
  expect(verifyStore(whole)).toEqual({ problems: [], ...counts })
  expect(await store.check()).toEqual([])
  await store.close()
  expect(() => verifyStore(join(folder, 'none.db'))).toThrow('There is no store')
})

test('damaged copies say so, or read as they were written', { timeout: 120_000 }, async () => {
  const original = readFileSync(whole)
  const tally = { refused: 0, found: 0, same: 0 }
  const damage = fc.record({
    kind: fc.constantFrom('flip', 'flip', 'flip', 'zero', 'cut'),
    // Most of the file is text, so most flips land inside rows.
    // An empty file is a new store, so at least one byte is left.
    place: fc.integer({ min: 1, max: original.length - 1 }),
    bit: fc.integer({ min: 0, max: 7 }),
  })
  const runs = process.env['SKEIN_DEEP'] ? 2_000 : 60
  await fc.assert(
    fc.asyncProperty(damage, async ({ kind, place, bit }) => {
      const copy = Buffer.from(original)
      if (kind === 'flip') copy[place]! ^= 1 << bit
      if (kind === 'zero') copy.fill(0, place, Math.min(place + 512, copy.length))
      const path = join(folder, `${count++}.db`)
      writeFileSync(path, kind === 'cut' ? copy.subarray(0, place) : copy)
      let contents: Record<string, unknown>
      try {
        contents = await contentsOf(path)
      } catch (error) {
        if (!isStoreError(error)) throw error
        tally.refused++
        return
      }
      let isSame = true
      for (const [name, value] of Object.entries(written)) {
        const found = contents[name]
        isSame &&= JSON.stringify(found) === JSON.stringify(value)
        if (found === 'STORE_CORRUPT' || name === 'heads' || name === 'setting') continue
        // A log that lost its index or its end reads as a true prefix; `verify` then finds what is missing.
        const before = value as readonly unknown[]
        expect(before.slice(0, (found as readonly unknown[]).length)).toEqual(found)
      }
      if (isSame) tally.same++
      else {
        tally.found++
        let problems: readonly string[]
        try {
          ;({ problems } = verifyStore(path))
        } catch (error) {
          if (!isStoreError(error)) throw error
          return
        }
        expect(problems).not.toEqual([])
      }
    }),
    { numRuns: runs, seed: 7 },
  )
  expect(tally.refused + tally.found).toBeGreaterThan(runs / 5)
})
