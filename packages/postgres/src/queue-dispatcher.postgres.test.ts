import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { describeDispatcher } from '@skein/runtime/testing'
import { memoryStore, systemTimers } from '@skein/runtime'
import { latch } from '../../../conformance/standard-agents/support/latch.ts'
import { suiteFunctions } from '../../../conformance/support/suite-functions.ts'
import { startProxy } from '../test/proxy.ts'
import { newPool, newSchema, noPostgres, startPostgres, type TestPostgres } from '../test/server.ts'
import { queueDispatcher } from './queue-dispatcher.ts'

let server: TestPostgres

describe.skipIf(noPostgres !== undefined)('with PostgreSQL', () => {
  beforeAll(async () => {
    server = await startPostgres()
  }, 60_000)
  afterAll(async () => server?.stop())

  describeDispatcher(suiteFunctions(), {
    name: 'on a queue in PostgreSQL',
    time: 'real',
    open: (parts) =>
      queueDispatcher({ connectionString: server.url, schema: newSchema() })({
        ...parts,
        maxConcurrent: 128,
      }),
  })

  test('a database that cannot be reached is an error without its password', async () => {
    const connectionString = 'postgres://someone:hunter2@127.0.0.1:1/none'
    const dispatcher = queueDispatcher({ connectionString })({
      store: memoryStore(),
      timers: systemTimers(),
      onError: () => {},
    })
    const error = await dispatcher
      .start(async () => {})
      .then(
        () => undefined,
        (error_: unknown) => error_,
      )
    expect(error).toMatchObject({
      code: 'QUEUE_UNREACHABLE',
      hint: expect.stringMatching(/direct/),
    })
    expect(`${String(error)} ${JSON.stringify(error)}`).not.toContain('hunter2')
    await dispatcher.stop()
  })

  const opened = (url: string) =>
    queueDispatcher({ connectionString: url, schema: newSchema() })({
      store: memoryStore(),
      timers: systemTimers(),
      onError: () => {},
    })

  test('a node that is stopped while it starts leaves no connection behind', async () => {
    const url = new URL(server.url)
    url.searchParams.set('application_name', 'stopped early')
    const admin = newPool({ connectionString: server.url, max: 1 })
    const count = async (): Promise<number> => {
      const { rows } = await admin.query<{ pid: number }>(
        `SELECT pid FROM pg_stat_activity WHERE application_name = 'stopped early'`,
      )
      return rows.length
    }
    for (const waits of [() => Promise.resolve(), async () => expect.poll(count).not.toBe(0)]) {
      const dispatcher = opened(url.href)
      const starting = dispatcher.start(async () => {})
      await waits()
      await dispatcher.stop()
      await starting.catch(() => {})
      await expect.poll(count, { timeout: 10_000 }).toBe(0)
    }
    await admin.end()
  }, 60_000)

  test('a node whose connection breaks while it stops lives, also if it had just begun to listen', async () => {
    const proxy = await startProxy(server.url)
    const unhandled: unknown[] = []
    const note = (reason: unknown): void => void unhandled.push(reason)
    process.on('unhandledRejection', note)
    const dispatcher = opened(proxy.url)
    const isListening = proxy.holdBack('LISTEN "jobs:insert"')
    await dispatcher.start(async () => {})
    await isListening
    const stopping = dispatcher.stop()
    // By now the queue wants to listen no more, and waits for the answer to its LISTEN.
    await new Promise((resolve) => setTimeout(resolve, 1_000))
    proxy.cutAll()
    await stopping
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', note)
    expect(unhandled).toEqual([])
    await proxy.stop()
  }, 60_000)

  test('after an outage of the database the node lives, and the queue gives it threads again', async () => {
    const own = await startPostgres()
    const store = memoryStore()
    const create = { ...NEW_THREAD, createdAt: Date.now() }
    const ids = ['first', 'second', 'third', 'fourth', 'after']
    const threads = ids.map((id) => ({ id, create: { ...create, rootId: id } }))
    await store.commit({ point: 'create', threads })
    const unhandled: unknown[] = []
    const note = (reason: unknown): void => void unhandled.push(reason)
    process.on('unhandledRejection', note)
    const errors: unknown[] = []
    // No sweep finds these threads: only the queue can have them run.
    const dispatcher = queueDispatcher({ connectionString: own.url, sweepMs: 3_600_000 })({
      store,
      timers: systemTimers(),
      onError: (error) => errors.push(error),
    })
    const drained: string[] = []
    const begun = new Map(ids.map((id) => [id, latch()]))
    const held = new Map(ids.map((id) => [id, latch()]))
    held.get('after')!.open()
    await dispatcher.start(async (id) => {
      begun.get(id)!.open()
      await held.get(id)!.reached
      await store.commit({ point: 'park', threads: [{ id, wake: { exactly: null } }] })
      drained.push(id)
    })
    const wake = async (id: string): Promise<void> => {
      await store.commit({ point: 'ask', threads: [{ id, wake: { by: Date.now() } }] })
      dispatcher.wake(id)
    }
    const during = ids.slice(0, -1)
    for (const id of during) await wake(id)
    for (const id of during) await begun.get(id)!.reached
    await own.kill9()
    // Their jobs end one after the other, and none of them can be completed.
    for (const id of during) {
      held.get(id)!.open()
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
    await own.restart()
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    await wake('after')
    for (let waits = 0; !drained.includes('after') && waits < 300; waits++)
      await new Promise((resolve) => setTimeout(resolve, 50))
    expect(drained).toEqual(ids)
    expect(errors).not.toEqual([])
    await dispatcher.stop()
    process.off('unhandledRejection', note)
    expect(unhandled).toEqual([])
    await own.stop()
  }, 60_000)
})

const NEW_THREAD = {
  tenant: '',
  owner: null,
  agent: 'test',
  parentId: null,
  title: null,
  tags: [],
  clientId: null,
}
