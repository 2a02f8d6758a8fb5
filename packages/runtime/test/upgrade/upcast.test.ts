import { expect, test } from 'vitest'
import { says, scripted } from '@skein/ai/testing'
import { manualClock } from '@skein/base'
import { createRuntime, memoryStore } from '../../src/index.ts'
import { EVENT_VERSION, type RuntimeEvent } from '../../src/contract/event.ts'
import { defineAgent } from '../../src/definitions/define-agent.ts'
import { definePrompt } from '../../src/definitions/define.ts'
import { manualTimers } from '../../src/testing/simulation.ts'
import { foldKernel, KernelFold } from '../../src/state/fold.ts'
import { migrations } from '../../src/store/sqlite/migrations.ts'
import { sqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { Store } from '../../src/store/store.ts'
import {
  eventVersions,
  upcastEvent,
  upcastingStore,
  type EventVersions,
  type Upcaster,
} from '../../src/store/upcast.ts'

const at = '2026-01-01T00:00:00.000Z'
const at0 = Date.parse(at)
const newer = EVENT_VERSION + 1

function created(version: number): RuntimeEvent {
  return { type: 'thread_created', at, threadId: 't', agent: 'echo', depth: 0, version }
}

async function storeWith(first: RuntimeEvent, ...rest: readonly unknown[]): Promise<Store> {
  const store = memoryStore()
  await fill(store, first, ...rest)
  return store
}

async function fill(store: Store, ...events: readonly unknown[]): Promise<void> {
  const none = { owner: null, parentId: null, title: null, tags: [], clientId: null }
  const create = { tenant: 'default', agent: 'echo', rootId: 't', createdAt: at0, ...none }
  const append = events as readonly RuntimeEvent[] // made-up ones of other versions too
  await store.commit({ point: 'test', threads: [{ id: 't', create, append, wake: { by: at0 } }] })
}

const echo = defineAgent({
  name: 'echo',
  sideA: {
    prompt: definePrompt({ name: 'echo', prompt: 'Echo.', model: scripted(() => says('hm')) }),
  },
})

test('a log of a later version is refused by every fold, again and again, and named', () => {
  const fold = new KernelFold()
  const stored = { seq: 1, event: created(newer) }
  const refusal = expect.objectContaining({
    code: 'LOG_VERSION',
    message: `Thread t was written in version ${newer}; this program knows ${EVENT_VERSION}.`,
    hint: expect.stringContaining('Update') as string,
  }) as Error
  expect(() => fold.push(stored)).toThrow(refusal)
  expect(fold.state.seq).toBe(0)
  expect(() => fold.push(stored)).toThrow(refusal)
  expect(foldKernel([{ seq: 1, event: created(EVENT_VERSION) }]).agent).toBe('echo')
})

test('the runtime leaves a thread of a later version as it is, and says so to whoever asks', async () => {
  const store = await storeWith(created(newer), { type: 'a_new_thing', at })
  const errors: unknown[] = []
  const onError = (error: unknown): void => void errors.push(error)
  const clock = manualClock(at0)
  const timers = manualTimers(clock) // nothing is tried again
  const runtime = await createRuntime({ agents: [echo], store, clock, timers, onError })
  await runtime.start()
  const refused = { code: 'LOG_VERSION' }
  await expect(runtime.threads.send('t', 'hello')).rejects.toMatchObject(refused)
  await expect(runtime.threads.messages('t')).rejects.toMatchObject(refused)
  await expect(runtime.threads.messages('t')).rejects.toMatchObject(refused)
  await timers.advance(50)
  expect(errors).toMatchObject([refused])
  const head = await runtime.threads.get('t')
  expect(head).toMatchObject({ seq: 2, attempts: 0, wakeAt: at, lifecycle: 'queued' })
  await runtime.stop()
})

/** Version 1 said `set`, version 2 `value_set` with one key, version 3 has text keys in lower case. */
const upcasters: readonly Upcaster[] = [
  {
    from: 1,
    upcast(event) {
      const { type, name, ...rest } = event as unknown as { type: string; name: string }
      return type === 'set' ? ({ type: 'value_set', key: name, ...rest } as never) : event
    },
  },
  {
    from: 2,
    upcast: (event) =>
      event.type === 'value_set' ? { ...event, key: event.key.toLowerCase() } : event,
  },
]
const third: EventVersions = { current: 3, upcasters }

test('events go through the steps from their version on, in order', () => {
  const set = { type: 'set', at, name: 'Color', value: 'red' } as unknown as RuntimeEvent
  const valueSet: RuntimeEvent = { type: 'value_set', at, key: 'Color', value: 'red' }
  expect(upcastEvent(set, 1, third)).toEqual({ ...valueSet, key: 'color' })
  expect(upcastEvent(valueSet, 2, third)).toEqual({ ...valueSet, key: 'color' })
  expect(upcastEvent(valueSet, 3, third)).toBe(valueSet)
  expect(upcastEvent(created(1), 1, third)).toEqual(created(3))
})

test.each([
  ['memory', memoryStore],
  ['SQLite', () => sqliteStore({ path: ':memory:' })],
])('a log reads as the current version writes it, from any number on (%s)', async (_, open) => {
  const inner = open()
  await fill(
    inner,
    created(1),
    { type: 'set', at, name: 'Color', value: 'red' },
    { type: 'value_set', at, key: 'size', value: 7 },
  )
  const store = upcastingStore(inner, third)
  const log = await store.events('t')
  expect(log.map(({ event }) => event)).toEqual([
    created(3),
    { type: 'value_set', at, key: 'color', value: 'red' },
    { type: 'value_set', at, key: 'size', value: 7 },
  ])
  const again = upcastingStore(inner, third) // one that has not seen the first event
  expect(await again.events('t', { after: 1, limit: 1 })).toEqual(log.slice(1, 2))
  expect(await again.events('t', { after: 1 })).toEqual(log.slice(1))
  expect(await again.events('t', { after: 3 })).toEqual([])
  expect(await again.head('t')).toMatchObject({ seq: 3 })
  await again.close()
  await expect(inner.head('t')).rejects.toMatchObject({ code: 'STORE_CLOSED' })
})

test('without upcasters a store is not wrapped', () => {
  const store = memoryStore()
  expect(upcastingStore(store, { current: 1, upcasters: [] })).toBe(store)
})

test('the question about a call in doubt of version 1 has a kind of its own; other questions keep theirs', () => {
  const opened = (kind: string, request: unknown): RuntimeEvent =>
    ({
      type: 'interrupt_opened',
      at,
      turnId: 't1',
      interrupt: { id: 'i1', toolCallId: 'c1', kind, request },
    }) as RuntimeEvent
  const inDoubt = { type: 'in_doubt', tool: 'pay', choices: ['applied', 'absent', 'unknown'] }
  const now = opened('in_doubt', inDoubt)
  expect(upcastEvent(opened('input', inDoubt), 1)).toEqual(now)
  expect(upcastEvent(now, 1)).toBe(now)
  for (const other of [
    opened('input', { kind: 'client_tool', toolName: 'x' }),
    opened('input', null),
    opened('approval', { type: 'in_doubt' }),
  ])
    expect(upcastEvent(other, 1)).toBe(other)
  const asked = opened('input', inDoubt)
  expect(upcastEvent(asked, EVENT_VERSION)).toBe(asked)
})

test('each version has its upcaster at most once, in order, and no file can be opened by an older program', () => {
  const froms = eventVersions.upcasters.map(({ from }) => from)
  expect(froms).toEqual([...new Set(froms)].toSorted((a, b) => a - b))
  for (const from of froms) expect(from).toBeLessThan(EVENT_VERSION)
  expect(migrations.at(-1)?.version).toBeGreaterThanOrEqual(EVENT_VERSION)
})
