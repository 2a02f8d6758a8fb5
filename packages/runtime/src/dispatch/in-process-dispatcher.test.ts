import { suiteFunctions } from '../../../../conformance/support/suite-functions.ts'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { manualClock } from '@skein/base'
import { memoryStore } from '../store/memory-store.ts'
import type { Store } from '../store/store.ts'
import { addThreads, newThread } from '../testing/contract.ts'
import { describeDispatcher } from '../testing/dispatcher-contract.ts'
import { manualTimers } from '../testing/simulation.ts'
import { inProcessDispatcher } from './in-process-dispatcher.ts'
import { systemTimers } from './dispatcher.ts'

describeDispatcher(suiteFunctions(), { name: 'in process', open: inProcessDispatcher })

/** Threads that want to be drained now, and a drain that parks. */
async function setUp(count: number) {
  const store = memoryStore()
  const ids = Array.from({ length: count }, (_, index) => `t${String(index).padStart(4, '0')}`)
  await addThreads(store, ...ids)
  const threads = ids.map((id) => ({ id, wake: { by: 0 } }))
  await store.commit({ point: 'test', threads })
  const park = (id: string) =>
    store.commit({ point: 'park', threads: [{ id, wake: { exactly: null } }] })
  return { store, ids, park, timers: manualTimers(manualClock(1000)) }
}

test('no more than so many drains run at once, and all get their turn in order', async () => {
  const { store, ids, park, timers } = await setUp(350)
  const dispatcher = inProcessDispatcher({ store, timers, maxConcurrent: 7 })
  const begun: string[] = []
  let running = 0
  let most = 0
  await dispatcher.start(async (id) => {
    begun.push(id)
    most = Math.max(most, ++running)
    await new Promise((resolve) => setImmediate(resolve))
    running--
    await park(id)
  })
  await dispatcher.idle()
  expect(most).toBe(7)
  expect(begun).toEqual(ids)
  await dispatcher.stop()
})

test('one long drain does not keep a long backlog waiting', async () => {
  const { store, ids, park, timers } = await setUp(350)
  const dispatcher = inProcessDispatcher({ store, timers, maxConcurrent: 2 })
  const ended = new Set<string>()
  let release = () => {}
  await dispatcher.start(async (id) => {
    if (id === ids[0]) await new Promise<void>((resolve) => (release = resolve))
    await park(id)
    ended.add(id)
  })
  // Enough turns for all drains, each of which takes a few promises only.
  for (let i = 0; i < 20; i++) await timers.advance(0)
  expect(ended.size).toBe(349)
  release()
  await dispatcher.idle()
  expect(ended.size).toBe(350)
  await dispatcher.stop()
})

test('a thread that is woken again and again does not keep others waiting', async () => {
  const { store, park, timers } = await setUp(3)
  const dispatcher = inProcessDispatcher({ store, timers, maxConcurrent: 1 })
  const begun: string[] = []
  await dispatcher.start(async (id) => {
    begun.push(id)
    if (id === 't0000' && begun.length < 6) dispatcher.wake(id)
    await park(id)
  })
  await dispatcher.idle()
  expect(begun.slice(0, 4)).toEqual(['t0000', 't0001', 't0002', 't0000'])
  await dispatcher.stop()
})

test('a store that does not answer is asked again', async () => {
  const { store, park, timers } = await setUp(1)
  const errors: unknown[] = []
  let failures = 2
  const flaky = {
    head: (id: string) => store.head(id),
    nextWake: (after?: number) => store.nextWake(after),
    due: (now: number, limit: number) =>
      failures-- > 0 ? Promise.reject(new Error('busy')) : store.due(now, limit),
  }
  const dispatcher = inProcessDispatcher({
    store: flaky,
    timers,
    onError(error) {
      errors.push(error)
      throw new Error('a listener that fails')
    },
  })
  const begun: string[] = []
  await dispatcher.start(async (id) => {
    begun.push(id)
    await park(id)
  })
  expect([begun.length, errors.length]).toEqual([0, 1])
  await timers.advance(3000)
  expect([begun, errors.length]).toEqual([['t0000'], 2])
  await dispatcher.stop()
})

test('an answer of the store that is older than a drain does not make another', async () => {
  const { store, park, timers } = await setUp(1)
  let answer = () => {}
  const slow = {
    head: (id: string) => store.head(id),
    nextWake: (after?: number) => store.nextWake(after),
    async due(now: number, limit: number) {
      const ids = await store.due(now, limit)
      await new Promise<void>((resolve) => (answer = resolve))
      return ids
    },
  }
  const dispatcher = inProcessDispatcher({ store: slow, timers })
  const begun: string[] = []
  const started = dispatcher.start(async (id) => {
    begun.push(id)
    await park(id)
  })
  await timers.advance(0)
  dispatcher.wake('t0000')
  await timers.advance(0)
  expect(begun).toEqual(['t0000'])
  answer()
  await timers.advance(0)
  answer()
  await started
  await timers.advance(0)
  expect(begun).toEqual(['t0000'])
  await dispatcher.stop()
})

test('a dispatcher starts once', async () => {
  const { store, timers } = await setUp(0)
  const dispatcher = inProcessDispatcher({ store, timers })
  await dispatcher.start(async () => {})
  await expect(dispatcher.start(async () => {})).rejects.toMatchObject({ code: 'RUNTIME_STOPPED' })
  await dispatcher.stop()
})

test('a drain that throws at once is a drain that fails', async () => {
  const { store, timers } = await setUp(1)
  const seen: (string | undefined)[] = []
  const dispatcher = inProcessDispatcher({ store, timers, onError: (_, id) => seen.push(id) })
  await dispatcher.start(() => {
    throw new Error('at once')
  })
  await timers.advance(300)
  expect(seen).toEqual(['t0000', 't0000', 't0000'])
  await dispatcher.stop({ graceMs: 0 })
})

test('a wait of more than 24.8 days does not end at once', async () => {
  const timers = systemTimers()
  const order: string[] = []
  const long = timers.set(2 ** 40, () => order.push('long'))
  // An overflowing setTimeout rings after 1 ms, which is before this one.
  await new Promise<void>((resolve) => setTimeout(resolve, 20))
  timers.clear(long)
  expect(order).toEqual([])
})

test('there is one timer, however many threads wait', async () => {
  const { store, ids, park, timers } = await setUp(20)
  const dispatcher = inProcessDispatcher({ store, timers })
  await dispatcher.start((id) => park(id).then(() => {}))
  await dispatcher.idle()
  for (const [index, id] of ids.entries()) {
    const by = 9000 - index * 10
    await store.commit({ point: 'test', threads: [{ id, wake: { by } }] })
    dispatcher.wake(id, by)
  }
  expect(timers.pending()).toEqual([9000 - 190])
  await dispatcher.stop()
  expect(timers.pending()).toEqual([])
})

test('threads that wait do not hold the process', async () => {
  const program = `
    import { memoryStore } from ${JSON.stringify(import.meta.resolve('../store/memory-store.ts'))}
    import { inProcessDispatcher } from ${JSON.stringify(import.meta.resolve('./in-process-dispatcher.ts'))}
    import { addThreads } from ${JSON.stringify(import.meta.resolve('../testing/contract.ts'))}
    const store = memoryStore()
    await addThreads(store, 'a')
    await store.commit({ point: 'test', threads: [{ id: 'a', wake: { by: Date.now() + 3_600_000 } }] })
    await inProcessDispatcher({ store }).start(async () => {})
    console.log('started')`
  const run = await promisify(execFile)(process.execPath, [
    '--conditions=@skein/source',
    '--input-type=module-typescript',
    '-e',
    program,
  ])
  expect(run).toMatchObject({ stdout: 'started\n', stderr: '' })
})

/** Adds threads of a tenant that are due now, and tells the dispatcher. */
async function addDue(
  store: Store,
  dispatcher: ReturnType<typeof inProcessDispatcher> | undefined,
  tenant: string,
  names: readonly string[],
): Promise<void> {
  const threads = names.map((id) => ({ id, create: newThread(id, { tenant }), wake: { by: 0 } }))
  await store.commit({ point: 'test', threads })
  for (const id of names) dispatcher?.wake(id)
}

const queued = (tenant: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${tenant}${index}`)

test.each(['woken', 'found in the store'])(
  'a thousand queued threads of one tenant let a thread of another begin with the next free place, %s',
  async (how) => {
    const store = memoryStore()
    const timers = manualTimers(manualClock(1000))
    const dispatcher = inProcessDispatcher({ store, timers, maxConcurrent: 4 })
    const started: string[] = []
    if (how !== 'woken') {
      await addDue(store, undefined, 'a', queued('a', 1000))
      await addDue(store, undefined, 'b', ['b0'])
    }
    await dispatcher.start(async (id) => {
      started.push(id)
      await new Promise<void>((resolve) => timers.set(10, resolve))
      await store.commit({ point: 'park', threads: [{ id, wake: { exactly: null } }] })
    })
    if (how === 'woken') {
      await addDue(store, dispatcher, 'a', queued('a', 1000))
      await timers.advance(0)
      expect(started).toHaveLength(4)
      await addDue(store, dispatcher, 'b', ['b0'])
    }
    await timers.advance(10)
    // At most one round of the others: its answer takes at most twice as long as without them.
    expect(started.indexOf('b0')).toBeGreaterThanOrEqual(0)
    expect(started.indexOf('b0')).toBeLessThanOrEqual(4)
    for (let i = 0; i < 1000 && started.length < 1001; i++) await timers.advance(10)
    expect(new Set(started).size).toBe(1001)
    await timers.advance(100)
    await dispatcher.stop()
  },
)

test('tenants with much work share the places equally, whatever the order of their arrival', async () => {
  const store = memoryStore()
  const timers = manualTimers(manualClock(1000))
  const dispatcher = inProcessDispatcher({ store, timers, maxConcurrent: 6 })
  const running = new Map<string, number>()
  const seen: string[] = []
  await dispatcher.start(async (id) => {
    const tenant = id[0]!
    running.set(tenant, (running.get(tenant) ?? 0) + 1)
    await new Promise<void>((resolve) => timers.set(10, resolve))
    running.set(tenant, running.get(tenant)! - 1)
    await store.commit({ point: 'park', threads: [{ id, wake: { exactly: null } }] })
  })
  for (const [tenant, count] of [
    ['a', 200],
    ['b', 30],
    ['c', 30],
  ] as const)
    await addDue(store, dispatcher, tenant, queued(tenant, count))
  for (let round = 0; round < 5; round++) {
    await timers.advance(10)
    seen.push(['a', 'b', 'c'].map((tenant) => running.get(tenant)).join())
  }
  expect(seen.slice(1)).toEqual(Array.from({ length: 4 }, () => '2,2,2'))
  await timers.advance(1_000)
  await dispatcher.stop()
})

test('long runs of one tenant cannot occupy every place once there are several tenants', async () => {
  const store = memoryStore()
  const timers = manualTimers(manualClock(1000))
  const dispatcher = inProcessDispatcher({ store, timers, maxConcurrent: 16 })
  const started: string[] = []
  await dispatcher.start(async (id) => {
    started.push(id)
    await new Promise<void>((resolve) => timers.set(id.startsWith('a') ? 1e9 : 10, resolve))
    await store.commit({ point: 'park', threads: [{ id, wake: { exactly: null } }] })
  })
  await addDue(store, dispatcher, 'b', ['b0'])
  await timers.advance(20)
  await addDue(store, dispatcher, 'a', queued('a', 50))
  await timers.advance(20)
  expect(started.filter((id) => id.startsWith('a'))).toHaveLength(14)
  await addDue(store, dispatcher, 'b', ['b1', 'b2'])
  await timers.advance(0)
  expect(started.at(-1)).toBe('b1')
  await timers.advance(10)
  expect(started.at(-1)).toBe('b2')
  void dispatcher.stop({ graceMs: 0 })
  await timers.advance(10_000)
})

test('one tenant alone may use every place', async () => {
  const store = memoryStore()
  const timers = manualTimers(manualClock(1000))
  const dispatcher = inProcessDispatcher({ store, timers, maxConcurrent: 16 })
  let started = 0
  await dispatcher.start(async () => {
    started++
    await new Promise<void>((resolve) => timers.set(1e9, resolve))
  })
  await addDue(store, dispatcher, 'a', queued('a', 50))
  await timers.advance(0)
  expect(started).toBe(16)
  void dispatcher.stop({ graceMs: 0 })
  await timers.advance(10_000)
})

test('a thread that another process holds is tried again when its lease ends, not before', async () => {
  const store = memoryStore()
  await addThreads(store, 'a')
  await store.commit({ point: 'test', threads: [{ id: 'a', wake: { by: 0 } }] })
  const timers = manualTimers(manualClock(1000))
  const dispatcher = inProcessDispatcher({ store, timers })
  const times: number[] = []
  await dispatcher.start(async () => {
    times.push(timers.now())
    return { type: 'held', leftMs: 7_000 }
  })
  let isIdle = false
  await timers.advance(0)
  void dispatcher.idle().then(() => (isIdle = true))
  await timers.advance(20_000)
  expect(times).toEqual([1000, 8000, 15_000])
  expect(isIdle).toBe(false)
  await dispatcher.stop()
})

const ids = ['a', 'b', 'c', 'd']
const eventArbitrary = fc.record({
  after: fc.integer({ min: 0, max: 400 }),
  id: fc.constantFrom(...ids),
  /** How far ahead the thread wants to be drained. */
  ahead: fc.integer({ min: 0, max: 300 }),
  isTold: fc.boolean(),
})

test(
  'law: whatever happens, each wish is met, and never by two drains at once',
  { timeout: 120_000 },
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(eventArbitrary, { minLength: 1, maxLength: 25 }),
        fc.array(fc.integer({ min: 0, max: 5 }), { minLength: 1, maxLength: 10 }),
        fc.integer({ min: 1, max: 3 }),
        async (events, outcomes, maxConcurrent) => {
          const store = memoryStore()
          await addThreads(store, ...ids)
          const timers = manualTimers(manualClock(1000))
          const dispatcher = inProcessDispatcher({ store, timers, maxConcurrent })
          const running = new Set<string>()
          const wrong: string[] = []
          let drains = 0
          await dispatcher.start(async (id) => {
            // Not `expect`: what a drain throws is only tried again.
            if (running.has(id)) wrong.push(`two drains of ${id}`)
            if (running.add(id).size > maxConcurrent) wrong.push('too many drains')
            const outcome = outcomes[drains++ % outcomes.length] ?? 0
            const seq = (await store.head(id))?.seq ?? 0
            await new Promise<void>((resolve) => timers.set(outcome * 20, resolve))
            running.delete(id)
            if (outcome === 4 && drains < 40) throw new Error('it died')
            const threads = [{ id, expectSeq: seq, wake: { exactly: null } }]
            await store.commit({ point: 'park', threads })
          })
          for (const { after, id, ahead, isTold } of events) {
            await timers.advance(after)
            const by = timers.now() + ahead
            await store.commit({ point: 'wish', threads: [{ id, wake: { by } }] })
            if (isTold) dispatcher.wake(id, by)
          }
          let isIdle = false
          void dispatcher.idle().then(() => (isIdle = true))
          await timers.advance(0)
          for (let i = 0; i < 500 && (await timers.advanceToNext()); i++);
          expect(wrong).toEqual([])
          expect(isIdle).toBe(true)
          expect(running.size).toBe(0)
          expect(await store.nextWake()).toBeUndefined()
          await dispatcher.stop()
        },
      ),
      { numRuns: process.env['SKEIN_DEEP'] ? 3000 : 100, seed: 31 },
    )
  },
)
