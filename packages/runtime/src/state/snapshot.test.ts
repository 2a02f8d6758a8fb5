import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { deserialize, serialize } from 'node:v8'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sha256Hex } from '@skein/base'
import { says, scripted } from '@skein/ai/testing'
import type { StoredEvent } from '../contract/event.ts'
import { upcastEvent } from '../store/upcast.ts'
import { defineAgent } from '../definitions/define-agent.ts'
import { definePrompt } from '../definitions/define.ts'
import { createRuntime } from '../runtime.ts'
import { memoryStore } from '../store/memory-store.ts'
import { sqliteStore } from '../store/sqlite/sqlite-store.ts'
import { storedMessages } from '../thread/messages.ts'
import type { Store } from '../store/store.ts'
import { foldKernel, KernelFold } from './fold.ts'
import { restoreSnapshot, snapshotFormat, takeSnapshot } from './snapshot.ts'

/** The logs of the database that version 1 has left: of many kinds of agents, parked in many ways. */
const logs: readonly StoredEvent[][] = (() => {
  const database = new DatabaseSync(':memory:')
  database.exec(
    readFileSync(join(import.meta.dirname, '../../test/upgrade/threads-v1.sql'), 'utf8'),
  )
  const rows = database.prepare('SELECT thread_id, seq, json FROM events ORDER BY 1, 2').all()
  const threads = new Map<unknown, StoredEvent[]>()
  for (const { thread_id: id, seq, json } of rows) {
    const event = upcastEvent(JSON.parse(String(json)) as StoredEvent['event'], 1)
    threads.set(id, [...(threads.get(id) ?? []), { seq: Number(seq), event }])
  }
  return [...threads.values()]
})()

function foldOf(log: readonly StoredEvent[]): KernelFold {
  const fold = new KernelFold()
  for (const stored of log) fold.push(stored)
  return fold
}

const longest = logs.toSorted((a, b) => b.length - a.length)[0]!

test('a snapshot at any place, with the events after it, gives the fold of the log', () => {
  expect(logs.length).toBeGreaterThan(5)
  for (const log of logs)
    for (let cut = 0; cut <= log.length; cut++) {
      const restored = restoreSnapshot(takeSnapshot(foldOf(log.slice(0, cut)))!.parts)
      const fold = new KernelFold()
      fold.restore(restored!)
      expect(fold.state).toStrictEqual(foldKernel(log.slice(0, cut)))
      for (const stored of log) fold.push(stored)
      expect(fold.state).toStrictEqual(foldKernel(log))
    }
})

test('SA-81 snapshots that follow each other, each with the changed parts alone, give the fold of the log', () => {
  for (const log of logs)
    for (const partSize of [1, 2, 7]) {
      const fold = new KernelFold()
      const stored = new Map<number, Uint8Array>()
      for (const [place, one] of log.entries()) {
        fold.push(one)
        if (place % 2 === 0) continue
        const { parts, saved } = takeSnapshot(fold, partSize)!
        for (const [part, bytes] of parts) stored.set(part, bytes)
        fold.saved = saved
        fold.changedFrom = fold.state.entries.length
        expect(restoreSnapshot(stored)!.state).toStrictEqual(foldKernel(log.slice(0, place + 1)))
      }
    }
})

test('a snapshot with a wrong byte or without a part is ignored', () => {
  const { parts } = takeSnapshot(foldOf(longest), 2)!
  expect(parts.size).toBeGreaterThan(3)
  expect(restoreSnapshot(parts)).toBeDefined()
  for (const [place, bytes] of parts) {
    const rest = new Map(parts)
    rest.delete(place)
    expect(restoreSnapshot(rest)).toBeUndefined()
    for (const at of [0, 5, bytes.length >> 1, bytes.length - 1]) {
      const damaged = bytes.slice()
      damaged[at]! ^= 1
      expect(restoreSnapshot(new Map([...parts, [place, damaged]]))).toBeUndefined()
    }
    const cut = bytes.subarray(0, bytes.length - 1)
    expect(restoreSnapshot(new Map([...parts, [place, cut]]))).toBeUndefined()
  }
  expect(restoreSnapshot(new Map([[0, new Uint8Array(3)]]))).toBeUndefined()
})

/** A snapshot whose first entries cannot be decoded, though its checksums are right. */
function withoutFirstEntries(): Map<number, Uint8Array> {
  const { parts } = takeSnapshot(foldOf(longest), 2)!
  const part = deserialize(parts.get(1)!) as object
  const broken = serialize({ ...part, body: Buffer.from('no entries') })
  const first = deserialize(parts.get(0)!.subarray(4)) as { sums: { entries: number[] } }
  first.sums.entries[0] = crc32(broken)
  const bytes = serialize(first)
  const sum = Buffer.alloc(4)
  sum.writeUInt32LE(crc32(bytes))
  return new Map([...parts, [1, broken], [0, Buffer.concat([sum, bytes])]])
}

test('entries are decoded when they are used: who reads the last messages does not pay for the first', () => {
  const { state } = restoreSnapshot(withoutFirstEntries())!
  const whole = foldKernel(longest)
  expect(state.entries.length).toBe(whole.entries.length)
  expect(whole.entries.length).toBeGreaterThan(2)
  expect(state.entries.at(-1)).toStrictEqual(whole.entries.at(-1))
  expect(state.places).toEqual(whole.places)
  expect(storedMessages(state, 1)).toStrictEqual(
    storedMessages(whole).slice(-storedMessages(state, 1).length),
  )
  expect(() => state.entries[1]).toThrow()
})

test('the entries of a restored state are used like any list', () => {
  const whole = foldKernel(longest).entries
  const size = whole.length
  const place = fc.integer({ min: -size - 2, max: size + 2 })
  const uses = fc.oneof(
    place.map((at) => (list: typeof whole) => list[at]),
    place.map((at) => (list: typeof whole) => list.at(at)),
    place.map((at) => (list: typeof whole) => at in list),
    fc.tuple(place, place).map(
      ([a, b]) =>
        (list: typeof whole) =>
          list.slice(a, b),
    ),
    fc.nat(size - 1).map((at) => (list: typeof whole) => (list[at] = { ...list[0]!, at: 'now' })),
    fc.nat(size - 1).map((at) => (list: typeof whole) => list.push(list[at]!)),
    fc.constant((list: typeof whole) => list.findLast(({ side }) => side === 'b')),
    fc.constant((list: typeof whole) => list.map(({ message }) => message.id)),
    fc.constant((list: typeof whole) => [...list.entries()]),
    fc.constant((list: typeof whole) => Object.keys(list)),
    fc.constant((list: typeof whole) => JSON.stringify(list)),
  )
  fc.assert(
    fc.property(fc.array(uses, { maxLength: 8 }), (all) => {
      const { state } = restoreSnapshot(takeSnapshot(foldOf(longest), 1)!.parts)!
      const plain = [...whole]
      for (const use of all) expect(use(state.entries)).toStrictEqual(use(plain))
      expect(state.entries).toStrictEqual(plain)
    }),
    { numRuns: 200 },
  )
})

test('a snapshot of another form is ignored', () => {
  const { parts } = takeSnapshot(foldOf(longest))!
  const first = deserialize(parts.get(0)!.subarray(4)) as object
  const as = (format: string): Map<number, Uint8Array> => {
    const bytes = serialize({ ...first, format })
    const sum = Buffer.alloc(4)
    sum.writeUInt32LE(crc32(bytes))
    return new Map([...parts, [0, Buffer.concat([sum, bytes])]])
  }
  expect(restoreSnapshot(as(snapshotFormat()))).toBeDefined()
  expect(restoreSnapshot(as(`${snapshotFormat()}1`))).toBeUndefined()
})

// If the fold of the same events has become another one, raise FOLD_VERSION in snapshot.ts and write the new
// hash here; otherwise snapshots of earlier versions would be taken for the new fold.
test('the same events give the same state as before, unless the version of the fold is another', () => {
  const plain = (_: string, value: unknown): unknown =>
    value === undefined
      ? '(undefined)'
      : value instanceof Map || value instanceof Set
        ? [...value]
        : value
  const states = logs.map((log) => JSON.stringify(foldKernel(log), plain))
  expect({ format: snapshotFormat(), states: sha256Hex(states.join('\n')).slice(0, 16) }).toEqual({
    format: '8.2.d59abc060959',
    states: 'f15fe7c546967064',
  })
})

/** A store that counts the events it reads and takes snapshots early. */
function counting(store: Store): { readonly store: Store; read: number } {
  const counts = { store, read: 0 }
  const { snapshots } = store
  const events: Store['events'] = async (...asked) => {
    const page = await store.events(...asked)
    counts.read += page.length
    return page
  }
  counts.store = new Proxy(store, {
    get(target, name) {
      if (name === 'events') return events
      if (name === 'snapshots') return { ...snapshots, every: 5 }
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
  return counts
}

for (const [name, open] of [
  ['memory', memoryStore],
  ['SQLite', () => sqliteStore({ path: ':memory:' })],
] as const)
  test(`another process opens a long thread without its first events (${name})`, async () => {
    const store = open()
    const start = async (counted: Store) => {
      const model = scripted(Array.from({ length: 9 }, () => says('Fine.')))
      const prompt = definePrompt({ name: 'talker', prompt: 'Talk.', model })
      const talker = defineAgent({ name: 'talker', sideA: { prompt } })
      const runtime = await createRuntime({ agents: [talker], store: counted })
      await runtime.start()
      return runtime
    }
    const first = counting(store)
    const one = await start(first.store)
    const { id } = await one.threads.create({ agent: 'talker' })
    for (let turn = 0; turn < 5; turn++) await one.threads.run(id, `Message ${turn}`)
    const { seq, logId } = (await store.head(id))!
    await expect.poll(async () => (await store.snapshots!.read(id, logId)).size).toBeGreaterThan(1)

    const second = counting(store)
    const other = await start(second.store)
    expect(await other.threads.messages(id)).toEqual(await one.threads.messages(id))
    expect(second.read).toBeLessThan(seq / 2)
    await other.threads.run(id, 'One more')
    const messages = await other.threads.messages(id)

    // A snapshot that cannot be read costs time and nothing else.
    await store.snapshots!.save(id, logId, new Map([[0, Uint8Array.of(1, 2, 3, 4, 5)]]))
    const third = counting(store)
    const last = await start(third.store)
    expect(await last.threads.messages(id)).toEqual(messages)
    expect(third.read).toBeGreaterThan(seq)
    await expect
      .poll(async () => restoreSnapshot(await store.snapshots!.read(id, logId)))
      .toBeDefined()

    await last.threads.erase(id)
    expect((await store.snapshots!.read(id, logId)).size).toBe(0)
  })

test('SA-86 a terminated child stays terminated, whatever is logged of it later', () => {
  const at = '2026-03-01T09:00:00.000Z'
  const reference = 'child'
  const ended = (outcome: 'completed' | 'failed' | 'terminated') =>
    ({ type: 'subagent_ended', at, reference, outcome }) as const
  const updated = { type: 'subagent_updated', at, reference, status: 'running' } as const
  const created = {
    type: 'subagent_created',
    at,
    reference,
    name: 'helper',
    isResumable: true,
  } as const
  for (const late of [updated, ended('completed'), ended('failed')]) {
    const log = [created, ended('terminated'), late] as readonly StoredEvent['event'][]
    const { children } = foldKernel(log.map((event, index) => ({ seq: index + 1, event })))
    expect(children.get(reference)).toMatchObject({ lifecycle: 'terminated' })
  }
})
