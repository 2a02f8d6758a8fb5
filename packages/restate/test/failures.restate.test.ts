import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemTimers, type Dispatcher, type Drain, memoryStore, type Store } from '@skein/runtime'
import { RestateDispatcherError, restateDispatcher } from '@skein/restate'
import { startBalancer } from './balancer.ts'
import { freePorts, missingRestate, type RestateServer, startRestate } from './server.ts'

let server: RestateServer
let count = 0

const pass = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function until(isDone: () => boolean, ms = 15_000): Promise<void> {
  const end = performance.now() + ms
  while (!isDone() && performance.now() < end) await pass(5)
  expect(isDone()).toBe(true)
}

async function setUp(ids: readonly string[]) {
  const store = memoryStore()
  const threads = ids.map((id) => ({
    id,
    create: {
      tenant: '',
      owner: null,
      agent: 'test',
      parentId: null,
      rootId: id,
      title: null,
      tags: [],
      clientId: null,
      createdAt: Date.now(),
    },
  }))
  await store.commit({ point: 'create', threads })
  const errors: unknown[] = []
  const serviceName = `Failure${count++}`
  const open = (options: Partial<Parameters<typeof restateDispatcher>[0]> = {}): Dispatcher =>
    restateDispatcher({ ...server, serviceName, ...options })({
      store,
      timers: systemTimers(),
      maxConcurrent: 128,
      onError: (error) => errors.push(error),
    })
  const ask = async (dispatcher: Dispatcher, id: string, at = Date.now()): Promise<void> => {
    await store.commit({ point: 'ask', threads: [{ id, wake: { by: at } }] })
    dispatcher.wake(id, at)
  }
  return { store, errors, serviceName, open, ask }
}

const park = (store: Store, id: string) =>
  store.commit({ point: 'park', threads: [{ id, lease: 'released', wake: { exactly: null } }] })

describe.skipIf(missingRestate() !== undefined)('Restate', () => {
  beforeAll(async () => {
    server = await startRestate()
  }, 120_000)
  afterAll(async () => server?.stop())

  test('time-outs, retention and retries are what the drain needs, not the defaults of the server', async () => {
    const { open, serviceName } = await setUp([])
    const dispatcher = open({ longestStepMs: 7_200_000 })
    await dispatcher.start(async () => {})
    const answer = await fetch(`${server.adminUrl}/services/${serviceName}`)
    const { handlers } = (await answer.json()) as { handlers: readonly Record<string, unknown>[] }
    expect(handlers.find(({ name }) => name === 'drain')).toMatchObject({
      ty: 'Exclusive',
      inactivity_timeout: '2h',
      abort_timeout: '2h',
      idempotency_retention: '1m',
      journal_retention: '0s',
    })
    expect(handlers.find(({ name }) => name === 'interrupt')).toMatchObject({ ty: 'Shared' })
    await dispatcher.stop()
  })

  test('example 88 runs with a server', async () => {
    const file = join(import.meta.dirname, '../../../examples/88-threads-on-restate.ts')
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--conditions=@skein/source', file],
      {
        env: {
          ...process.env,
          RESTATE_INGRESS_URL: server.ingressUrl,
          RESTATE_ADMIN_URL: server.adminUrl,
        },
        timeout: 30_000,
      },
    )
    expect(stdout).toBe('Woken by Restate.\n')
  }, 40_000)

  test('timers fire when they are due: 20 at different times', async () => {
    const ids = Array.from({ length: 20 }, (_, index) => `t${index}`)
    const { store, open, ask } = await setUp(ids)
    const late: number[] = []
    const times = new Map<string, number>()
    const dispatcher = open()
    await dispatcher.start(async (id) => {
      late.push(Date.now() - times.get(id)!)
      await park(store, id)
    })
    for (const [index, id] of ids.entries()) {
      times.set(id, Date.now() + 300 + index * 40)
      await ask(dispatcher, id, times.get(id))
    }
    await until(() => late.length === 20)
    const sorted = late.toSorted((a, b) => a - b)
    console.log(`late by ${sorted[10]} ms at the median, ${sorted.at(-1)} ms at most`)
    expect(sorted[0]).toBeGreaterThanOrEqual(0)
    expect(sorted[10]).toBeLessThan(500)
    await dispatcher.stop()
  })

  test('a drain that takes longer than Restate waits is not run twice', async () => {
    const { store, errors, open, ask } = await setUp(['a'])
    let runs = 0
    const dispatcher = open({ longestStepMs: 500 })
    await dispatcher.start(async (id) => {
      runs++
      await pass(4_000)
      await park(store, id)
    })
    await ask(dispatcher, 'a')
    await pass(5_500)
    expect(runs).toBe(1)
    expect((await store.head('a'))?.wakeAt).toBe(null)
    expect(errors).toEqual([])
    await dispatcher.stop()
  })

  test('an interrupt reaches the drain on another node, and work is shared by the nodes', async () => {
    const ids = Array.from({ length: 40 }, (_, index) => `t${index}`)
    const { store, open, ask } = await setUp(['a', ...ids])
    const balancer = await startBalancer()
    const drainedBy = new Map<string, string>()
    const reasons: unknown[] = []
    const drainOf =
      (node: string): Drain =>
      async (id, signal) => {
        drainedBy.set(id, node)
        if (id === 'a' && reasons.length === 0)
          await new Promise<void>((resolve) =>
            signal.addEventListener('abort', () => {
              reasons.push(signal.reason)
              resolve()
            }),
          )
        await park(store, id)
      }
    const [one = 0, other = 0] = await freePorts(2)
    const nodes = [one, other].map((port) => {
      balancer.add(`http://127.0.0.1:${port}`)
      return open({ address: balancer.url, listen: { port } })
    })
    for (const [index, node] of nodes.entries()) await node.start(drainOf(`node ${index}`))
    await ask(nodes[0]!, 'a')
    await until(() => drainedBy.has('a'))
    const elsewhere = drainedBy.get('a') === 'node 0' ? nodes[1]! : nodes[0]!
    elsewhere.interrupt('a', 'stop')
    await until(() => reasons.length === 1)
    expect(reasons).toEqual(['stop'])
    for (const id of ids) await ask(nodes[0]!, id)
    await until(() => drainedBy.size === 41)
    const shares = ['node 0', 'node 1'].map(
      (name) => [...drainedBy.values()].filter((node) => node === name).length,
    )
    expect(Math.min(...shares)).toBeGreaterThan(5)
    await Promise.all(nodes.map((node) => node.stop()))
    await balancer.stop()
  })

  test('after a crash of the server nothing is lost; meanwhile threads go on, late', async () => {
    const { store, errors, open, ask } = await setUp(['timer', 'before', 'during', 'after'])
    const drained: string[] = []
    const dispatcher = open()
    await dispatcher.start(async (id) => {
      drained.push(id)
      if (id === 'before') await pass(1_000)
      await park(store, id)
    })
    await ask(dispatcher, 'before')
    await ask(dispatcher, 'timer', Date.now() + 9_000)
    await until(() => drained.length === 1)
    await server.kill9()
    await ask(dispatcher, 'during')
    await until(() => drained.includes('during'), 10_000)
    expect(errors.some((error) => error instanceof RestateDispatcherError)).toBe(true)
    await server.restart()
    const asked = performance.now()
    await ask(dispatcher, 'after')
    await until(() => drained.includes('after'))
    console.log(`first drain ${Math.round(performance.now() - asked)} ms after the restart`)
    await until(() => drained.includes('timer'))
    await pass(1_500)
    expect(drained.toSorted()).toEqual(['after', 'before', 'during', 'timer'])
    await dispatcher.stop()
  }, 60_000)

  test('a server that cannot be reached is an error that says what to do, after a bounded wait', async () => {
    const { errors, open } = await setUp([])
    const [port = 0] = await freePorts(1)
    const dispatcher = open({ adminUrl: `http://user:hunter2@127.0.0.1:${port}`, startMs: 700 })
    const began = performance.now()
    const error = await dispatcher
      .start(async () => {})
      .then(
        () => undefined,
        (error_: unknown) => error_,
      )
    expect(performance.now() - began).toBeLessThan(2_000)
    expect(error).toMatchObject({
      code: 'RESTATE_UNREACHABLE',
      hint: expect.stringMatching(/Start the Restate/),
    })
    expect(errors).toHaveLength(1)
    expect(`${String(error)} ${JSON.stringify(error)} ${String(errors[0])}`).not.toContain(
      'hunter2',
    )
    await dispatcher.stop()
  })

  test('an address that the server cannot reach is refused with a hint', async () => {
    const { open } = await setUp([])
    const [port = 0] = await freePorts(1)
    const dispatcher = open({ address: `http://127.0.0.1:${port}`, startMs: 700 })
    const starting = dispatcher.start(async () => {})
    await expect(starting).rejects.toMatchObject({
      code: 'RESTATE_REFUSED',
      hint: expect.stringMatching(/load balancer/),
    })
    await dispatcher.stop()
  })
})
