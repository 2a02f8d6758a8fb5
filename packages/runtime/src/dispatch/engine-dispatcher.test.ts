import { expect, test, vi } from 'vitest'
import { manualClock } from '@skein/base'
import { suiteFunctions } from '../../../../conformance/support/suite-functions.ts'
import { memoryStore } from '../store/memory-store.ts'
import type { Store } from '../store/store.ts'
import { addThreads } from '../testing/contract.ts'
import { describeDispatcher } from '../testing/dispatcher-contract.ts'
import { manualTimers } from '../testing/simulation.ts'
import { type Drain, idle, settled } from './dispatcher.ts'
import { type Engine, engineDispatcher, type EngineNode } from './engine-dispatcher.ts'

/** An engine in memory: one queue for all its nodes; a run that rejects is given to the next node. */
class MemoryEngine {
  readonly nodes: EngineNode[] = []
  readonly sent: (Parameters<Engine['send']>[1] & { readonly threadId: string })[] = []
  readonly #keys = new Set<string>()
  readonly #set: (ms: number, callback: () => void) => unknown
  isDown = false
  #turn = 0

  constructor(set: (ms: number, callback: () => void) => unknown = setTimeout_) {
    this.#set = set
  }

  node(): Engine {
    let own: EngineNode | undefined
    return {
      start: async (node) => void this.nodes.push((own = node)),
      send: async (threadId, options) => {
        if (this.isDown) throw new Error('The engine is down.')
        this.sent.push({ threadId, ...options })
        const { key, delayMs = 0 } = options
        if (key !== undefined && this.#keys.has(`${threadId} ${key}`)) return
        if (key !== undefined) this.#keys.add(`${threadId} ${key}`)
        this.#later(threadId, delayMs)
      },
      stop: async () => void this.nodes.splice(this.nodes.indexOf(own!), 1),
    }
  }

  #later(threadId: string, ms: number): void {
    const run = async (): Promise<void> => {
      const node = this.nodes[this.#turn++ % this.nodes.length]
      try {
        const { againMs } = (await node?.run(threadId)) ?? {}
        if (againMs !== undefined) this.#later(threadId, againMs)
      } catch {
        if (this.nodes.length > 0) this.#later(threadId, 10)
      }
    }
    this.#set(ms, () => void run())
  }
}

const setTimeout_ = (ms: number, callback: () => void): unknown => setTimeout(callback, ms)

describeDispatcher(suiteFunctions(), {
  name: 'on an engine in memory',
  time: 'real',
  open: (parts) => engineDispatcher({ ...parts, engine: new MemoryEngine().node(), sweepMs: 200 }),
})

async function setUp(...ids: readonly string[]) {
  const clock = manualClock(100_000)
  const timers = manualTimers(clock)
  const store = memoryStore({ clock })
  await addThreads(store, ...ids)
  const engine = new MemoryEngine((ms, callback) => timers.set(ms, callback))
  const errors: unknown[] = []
  const open = (options: { readonly maxConcurrent?: number } = {}) =>
    engineDispatcher({
      store,
      timers,
      engine: engine.node(),
      onError: (error) => errors.push(error),
      ...options,
    })
  const ask = (id: string, at = clock.now()) =>
    store.commit({ point: 'ask', threads: [{ id, wake: { by: at } }] })
  return { clock, timers, store, engine, errors, open, ask }
}

const park = (store: Store, id: string) =>
  store.commit({ point: 'park', threads: [{ id, lease: 'released', wake: { exactly: null } }] })

test('a storm of messages costs one request each 50 ms, and none while somebody works on the thread', async () => {
  const { timers, store, engine, open, ask, clock } = await setUp('a')
  const dispatcher = open()
  await dispatcher.start(async () => {})
  await ask('a')
  engine.nodes.length = 0 // nobody works
  for (let i = 0; i < 100; i++) {
    dispatcher.wake('a', clock.now())
    await timers.advance(1)
  }
  expect(engine.sent.length).toBeGreaterThan(1)
  expect(engine.sent.length).toBeLessThanOrEqual(3)
  await store.claim('a', { owner: 'another node', leaseMs: 60_000 })
  await timers.advance(100)
  const before = engine.sent.length
  for (let i = 0; i < 200; i++) {
    dispatcher.wake('a', clock.now())
    await timers.advance(1)
  }
  expect(engine.sent.length - before).toBeLessThanOrEqual(1)
})

test('the threads of a node that died go on together, also if the store is slow', async () => {
  const ids = Array.from({ length: 20 }, (_, index) => `t${index}`)
  const { timers, store, ask, engine, clock } = await setUp(...ids)
  for (const id of ids) await ask(id)
  for (const id of ids) await store.claim(id, { owner: 'dead', leaseMs: 7_500 })
  const slow: Pick<Store, 'due' | 'head' | 'nextWake'> = {
    due: (now, limit) => store.due(now, limit),
    nextWake: (now) => store.nextWake(now),
    async head(id) {
      await new Promise<void>((resolve) => timers.set(100, resolve))
      return store.head(id)
    },
  }
  const ran = new Map<string, number>()
  const dispatcher = engineDispatcher({ store: slow, timers, engine: engine.node() })
  engine.isDown = true
  const started = dispatcher.start(async (id) => {
    ran.set(id, clock.now())
    await park(store, id)
  })
  for (let ms = 0; ms < 12_000; ms += 50) await timers.advance(50)
  await started
  expect([...ran.keys()].toSorted()).toEqual(ids.toSorted())
  expect(Math.max(...ran.values()) - Math.min(...ran.values())).toBeLessThan(500)
})

test('a retry that the engine has lost is sent again by a sweep, within three seconds', async () => {
  const { timers, store, engine, open, ask, clock } = await setUp('a')
  const ran: number[] = []
  const dispatcher = open()
  await dispatcher.start(async (id) => {
    ran.push(clock.now())
    if (ran.length === 1) throw new Error('The store cannot be reached.')
    await park(store, id)
  })
  await ask('a')
  const { againMs } = await engine.nodes[0]!.run('a')
  expect([againMs, ran.length]).toEqual([100, 1]) // nobody runs it again after this time
  for (let ms = 0; ms < 3_000; ms += 50) await timers.advance(50)
  expect(ran).toHaveLength(2)
  await dispatcher.stop()
})

test('a thread whose requests the engine takes and loses is run without it, within six seconds', async () => {
  const { timers, store, ask } = await setUp('a')
  await ask('a')
  const ran: string[] = []
  const engine: Engine = { start: async () => {}, send: async () => {}, stop: async () => {} }
  const dispatcher = engineDispatcher({ store, timers, engine })
  await dispatcher.start(async (id) => {
    ran.push(id)
    await park(store, id)
  })
  for (let ms = 0; ms < 6_000; ms += 50) await timers.advance(50)
  expect(ran).toEqual(['a'])
  await dispatcher.stop()
})

test('a thread whose owner died or froze is run without the engine, which may still wait for the owner', async () => {
  const { timers, store, engine, open, ask } = await setUp('a')
  await ask('a')
  await store.claim('a', { owner: 'frozen', leaseMs: 7_500 })
  const ran: string[] = []
  const dispatcher = open()
  engine.isDown = true
  await dispatcher.start(async (id) => {
    ran.push(id)
    await park(store, id)
  })
  await timers.advance(7_400)
  expect(ran).toEqual([])
  await timers.advance(1_600)
  expect(ran).toEqual(['a'])
  await dispatcher.stop()
})

test('a thread whose owner died is run when its lease ends, not only at the next sweep', async () => {
  const { clock, timers, store, engine, ask } = await setUp('a')
  await ask('a')
  await store.claim('a', { owner: 'dead', leaseMs: 5_000 })
  const ends = clock.now() + 5_000
  // A store that nodes share also tells when the leases of others end.
  const shared: Pick<Store, 'due' | 'head' | 'nextWake'> = {
    due: (now, limit) => store.due(now, limit),
    head: (id) => store.head(id),
    nextWake: async (after = 0) => (after < ends ? ends : undefined),
  }
  const random = vi.spyOn(Math, 'random').mockReturnValue(0.9)
  const dispatcher = engineDispatcher({
    store: shared,
    timers,
    engine: engine.node(),
    sweepMs: 2_000, // at 2.8 s and at 5.6 s
  })
  const drained: number[] = []
  await dispatcher.start(async (id) => {
    drained.push(clock.now())
    await store.commit({ point: 'park', threads: [{ id, wake: { exactly: null } }] })
  })
  await timers.advance(4_999)
  expect(drained).toEqual([])
  await timers.advance(101)
  expect(drained).toHaveLength(1)
  random.mockRestore()
  await dispatcher.stop()
})

test('threads are late but not stuck while the engine cannot be reached, and each failure is reported', async () => {
  const { timers, store, engine, errors, open, ask, clock } = await setUp('a', 'b')
  const ran: string[] = []
  const dispatcher = open()
  await dispatcher.start(async (id) => {
    ran.push(id)
    await park(store, id)
  })
  engine.isDown = true
  await ask('a')
  dispatcher.wake('a', clock.now())
  await timers.advance(10_000)
  expect(ran).toEqual(['a'])
  expect(errors.length).toBeGreaterThan(0)
  engine.isDown = false
  await ask('b')
  dispatcher.wake('b', clock.now())
  await timers.advance(10)
  expect(ran).toEqual(['a', 'b'])
  await dispatcher.stop()
})

test('a thread that another node holds is run again when the lease of that node ends', async () => {
  const { timers, engine, open, ask, clock } = await setUp('a')
  let runs = 0
  const drain: Drain = async () => {
    runs++
    return { type: 'held', leftMs: 3000 }
  }
  const dispatcher = open()
  await dispatcher.start(drain)
  await ask('a')
  dispatcher.wake('a', clock.now())
  await timers.advance(10)
  expect(runs).toBe(1)
  expect(engine.sent).toEqual([{ threadId: 'a' }])
  await timers.advance(2_900)
  const before = runs
  await timers.advance(200)
  expect(runs).toBeGreaterThan(before)
  await dispatcher.stop()
})

test('a node that stops gives its threads to the others', async () => {
  const { timers, store, engine, open, ask, clock } = await setUp('a', 'b')
  const ran: string[] = []
  const nodeOf =
    (name: string): Drain =>
    async (id, signal) => {
      ran.push(`${name} ${id}`)
      if (name === 'first') {
        // Held, so that no sweep of the other node finds it.
        await store.claim(id, { owner: name, leaseMs: 60_000 })
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
        await store.release(name)
        throw new Error('aborted')
      }
      await park(store, id)
    }
  const first = open()
  await first.start(nodeOf('first'))
  await ask('a')
  first.wake('a', clock.now())
  await timers.advance(10)
  const second = open()
  await second.start(nodeOf('second'))
  const stopped = first.stop({ graceMs: 100 })
  await ask('b')
  second.wake('b', clock.now())
  await timers.advance(500)
  await stopped
  expect(engine.nodes.length).toBe(1)
  expect(ran.toSorted()).toEqual(['first a', 'second a', 'second b'])
  await second.stop()
})

test('a thread whose agent is missing is not tried by every sweep, and no more drains run than places', async () => {
  const { timers, store, open, ask, clock } = await setUp('a', 'b', 'c', 'd')
  const dispatcher = open({ maxConcurrent: 2 })
  let tries = 0
  let working = 0
  let most = 0
  const ends: (() => void)[] = []
  await dispatcher.start(async (id) => {
    if (id === 'a') {
      tries++
      return { type: 'agent_missing' }
    }
    most = Math.max(most, ++working)
    await new Promise<void>((resolve) => ends.push(resolve))
    working--
    await park(store, id)
  })
  await ask('a')
  dispatcher.wake('a', clock.now())
  await timers.advance(29_000)
  expect(tries).toBe(1)
  await timers.advance(2_000)
  expect(tries).toBe(2)
  for (const id of ['b', 'c', 'd']) {
    await ask(id)
    dispatcher.wake(id, clock.now())
  }
  await timers.advance(10)
  expect(working).toBe(2)
  for (let i = 0; i < 3; i++) {
    ends[i]?.()
    await timers.advance(10)
  }
  expect([most, ends.length]).toEqual([2, 3])
  await dispatcher.stop()
})

test('callers that wait for a thread, or for all, are told by the store', async () => {
  const { timers, store, open, ask, clock } = await setUp('a')
  const dispatcher = open()
  await ask('a')
  await store.claim('a', { owner: 'another node', leaseMs: 60_000 })
  let done = ''
  const parts = { dispatcher, store, timers }
  void settled(parts, 'a').then(() => (done += 'settled '))
  void idle(parts).then(() => (done += 'idle '))
  void settled(parts, 'nobody').then(() => (done += 'nobody '))
  await timers.advance(1000)
  expect(done).toBe('nobody ')
  await park(store, 'a')
  await timers.advance(50)
  expect(done.split(' ').toSorted().join(' ').trim()).toBe('idle nobody settled')
  expect(clock.now()).toBeGreaterThan(0)
})
