import { isStoreError, type StoreErrorCode } from '@skein/runtime'
import { postgresStore } from '@skein/postgres'
import { type AddressInfo, createServer } from 'node:net'
import { inspect } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { storeFailure } from '../src/errors.ts'
import { add, append, event, valuesOf } from './kit.ts'
import { startProxy } from './proxy.ts'
import { newPool, newSchema, noPostgres, startPostgres, type TestPostgres } from './server.ts'

async function codeOf(promise: Promise<unknown>): Promise<StoreErrorCode | string> {
  try {
    await promise
    return 'ok'
  } catch (error) {
    return isStoreError(error) ? error.code : String(error)
  }
}

describe.skipIf(noPostgres !== undefined)('a server that fails', () => {
  let server: TestPostgres
  beforeAll(async () => {
    server = await startPostgres()
  }, 60_000)
  afterAll(() => server.stop(), 60_000)

  test.each(['cut after', 'cut before', 'cut, then late'] as const)(
    'a commit whose connection is lost at COMMIT (%s) is written once, and answered',
    async (fault) => {
      const proxy = await startProxy(server.url)
      const store = await postgresStore({ connectionString: proxy.url, schema: newSchema() })
      await add(store, 't')
      for (let i = 0; i < 3; i++) {
        proxy.atCommit(fault)
        const { seqs } = await append(store, 't', i)
        expect(seqs.get('t')).toBe(i + 1)
        expect(proxy.faults()).toBe(i + 1)
      }
      // Several commits in one transaction.
      proxy.atCommit(fault)
      await Promise.all([3, 4, 5].map((value) => append(store, 't', value)))
      expect(await valuesOf(store, 't')).toEqual([0, 1, 2, 3, 4, 5])
      expect(proxy.faults()).toBe(4)
      await store.close()
      await proxy.stop()
    },
    60_000,
  )

  test('a commit is written once, also if the connection that finds it written is lost too', async () => {
    const proxy = await startProxy(server.url)
    const store = await postgresStore({ connectionString: proxy.url, schema: newSchema() })
    await add(store, 't')
    proxy.atCommit('cut after')
    proxy.atRollback('cut before')
    expect((await append(store, 't', 1)).seqs.get('t')).toBe(1)
    expect(proxy.faults()).toBe(2)
    await append(store, 't', 2)
    expect(await valuesOf(store, 't')).toEqual([1, 2])
    await store.close()
    await proxy.stop()
  })

  test('a fenced commit that was lost and taken over meanwhile is refused, not written', async () => {
    const proxy = await startProxy(server.url)
    const schema = newSchema()
    const one = await postgresStore({ connectionString: proxy.url, schema, retryMs: 5000 })
    const two = await postgresStore({ connectionString: server.url, schema })
    await add(one, 't')
    await one.claim('t', { owner: 'one', leaseMs: 1 })
    await new Promise((resolve) => setTimeout(resolve, 20))
    proxy.atCommit('cut before')
    const late = one.commit({
      point: 'test',
      threads: [{ id: 't', fence: 1, append: [event(1)] }],
    })
    const taken = await two.claim('t', { owner: 'two', leaseMs: 60_000 })
    const outcome = await codeOf(late)
    // Which of the two was first is open; both orders leave a log that fits.
    expect(outcome === 'FENCED' ? [] : [1]).toEqual(await valuesOf(two, 't'))
    expect(taken && 'epoch' in taken && taken.epoch).toBe(2)
    await Promise.all([one.close(), two.close(), proxy.stop()])
  })

  test('all connections are cut again and again: nothing acknowledged is lost or doubled', async () => {
    const proxy = await startProxy(server.url)
    const schema = newSchema()
    const store = await postgresStore({ connectionString: proxy.url, schema, retryMs: 50_000 })
    const ids = Array.from({ length: 8 }, (_, index) => `t${index}`)
    for (const id of ids) await add(store, id)
    const cutting = setInterval(() => proxy.cutAll(), 97)
    const writers = ids.map(async (id) => {
      for (let i = 0; i < 25; i++) await append(store, id, i)
    })
    await Promise.all(writers)
    clearInterval(cutting)
    const all = Array.from({ length: 25 }, (_, index) => index)
    for (const id of ids) expect(await valuesOf(store, id)).toEqual(all)
    await store.close()
    await proxy.stop()
  }, 60_000)

  test('the server is killed during commits: what was acknowledged is there, once', async () => {
    const own = await startPostgres()
    const store = await postgresStore({ connectionString: own.url })
    await add(store, 't')
    const answered: number[] = []
    let isOver = false
    const writing = (async () => {
      for (let i = 0; !isOver; i++) {
        await append(store, 't', i)
        answered.push(i)
      }
    })()
    for (let round = 0; round < 3; round++) {
      const before = answered.length
      while (answered.length < before + 10) await new Promise((resolve) => setTimeout(resolve, 5))
      await own.kill9()
      await own.restart()
    }
    const before = answered.length
    while (answered.length < before + 3) await new Promise((resolve) => setTimeout(resolve, 5))
    isOver = true
    await writing
    expect(await valuesOf(store, 't')).toEqual(answered)
    expect((await store.totals()).threads.get('idle')).toBe(1)
    await store.close()
    await own.stop()
  }, 60_000)

  test('a server that stays away is an error that says so, and work goes on when it is back', async () => {
    const own = await startPostgres()
    const store = await postgresStore({ connectionString: own.url, retryMs: 300 })
    await add(store, 't')
    await own.kill9()
    const error: unknown = await append(store, 't', 1).catch((reason: unknown) => reason)
    expect(isStoreError(error, 'STORE_UNREACHABLE'), String(error)).toBe(true)
    expect(inspect(error, { depth: 9 })).not.toContain('test-password')
    expect(await codeOf(store.head('t'))).toBe('STORE_UNREACHABLE')
    await own.restart()
    await append(store, 't', 2)
    expect(await valuesOf(store, 't')).toEqual([2])
    await store.close()
    await own.stop()
  }, 60_000)

  test('a node that stops in the middle of a transaction holds up others for ten seconds at most', async () => {
    const schema = newSchema()
    const store = await postgresStore({ connectionString: server.url, schema })
    await add(store, 't')
    const client = new pg.Client({ connectionString: server.url })
    client.on('error', () => {})
    await client.connect()
    // What a store sends first, from a process that is then frozen.
    await client.query('BEGIN')
    await client.query(`SELECT set_config('idle_in_transaction_session_timeout', '500', true)`)
    await client.query(`SELECT 1 FROM ${schema}.threads WHERE id = 't' FOR UPDATE`)
    const begun = performance.now()
    await append(store, 't', 1)
    expect(performance.now() - begun).toBeGreaterThan(300)
    await store.close()
  }, 60_000)

  test.each([
    ['of the store', (connectionString: string) => ({ connectionString })],
    ['of the caller', (connectionString: string) => ({ pool: newPool({ connectionString }) })],
  ])(
    'a server that ends in the moment when a connection of a pool %s is ready does not end the process',
    async (_, to) => {
      const message = (type: string, body: Buffer): Buffer => {
        const head = Buffer.alloc(5)
        head.write(type)
        head.writeInt32BE(body.length + 4, 1)
        return Buffer.concat([head, body])
      }
      const fatal = 'SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0'
      const fake = createServer((socket) => {
        socket.on('error', () => {})
        // Authenticated, ready and ended, in one piece.
        socket.once('data', () =>
          socket.end(
            Buffer.concat([
              message('R', Buffer.alloc(4)),
              message('Z', Buffer.from('I')),
              message('E', Buffer.from(fatal)),
            ]),
          ),
        )
      })
      await new Promise<void>((resolve) => fake.listen(0, '127.0.0.1', resolve))
      const { port } = fake.address() as AddressInfo
      const connectionString = `postgres://someone@127.0.0.1:${port}/none`
      expect(await codeOf(postgresStore({ ...to(connectionString), retryMs: 200 }))).toBe(
        'STORE_UNREACHABLE',
      )
      fake.close()
    },
  )

  test('no error contains the password', async () => {
    const secret = 'canary-4711'
    const url = new URL(server.url)
    const addresses = [
      `postgres://postgres:${secret}@127.0.0.1:${url.port}/postgres`,
      `postgres://postgres:${secret}@127.0.0.1:1/postgres`,
      `postgres://postgres:${secret}@nowhere.invalid:${url.port}/postgres`,
      `postgres://postgres:${secret}@127.0.0.1:99999999/postgres`,
      `postgres://postgres:${secret}@[::bad/postgres`,
    ]
    for (const connectionString of addresses) {
      const error = await postgresStore({ connectionString, retryMs: 100 }).then(
        () => undefined,
        (reason: unknown) => reason,
      )
      expect(error).toBeInstanceOf(Error)
      expect(isStoreError(error, 'STORE_UNREACHABLE'), String(error)).toBe(true)
      for (let at: unknown = error; at instanceof Error; at = at.cause)
        expect(inspect(at, { depth: 9 })).not.toContain(secret)
    }
  })

  test('states of the server become errors that say what to do', async () => {
    const failed = (code: string) =>
      storeFailure(Object.assign(new Error('text of the server'), { code }))
    const codes: Readonly<Record<string, StoreErrorCode>> = {
      '53100': 'STORE_FULL',
      '25006': 'STORE_READ_ONLY',
      '42501': 'STORE_READ_ONLY',
      '53300': 'STORE_LIMIT',
      '54000': 'STORE_LIMIT',
      XX001: 'STORE_CORRUPT',
      '57P01': 'STORE_UNREACHABLE',
      ECONNRESET: 'STORE_UNREACHABLE',
    }
    for (const [state, code] of Object.entries(codes)) {
      const error = failed(state)
      expect(isStoreError(error, code), state).toBe(true)
      expect((error as { hint?: string }).hint, state).toBeTruthy()
    }
    const other = new Error('a bug')
    expect(storeFailure(other)).toBe(other)
  })

  test('a database that is read-only says so after the time for retries', async () => {
    const schema = newSchema()
    const store = await postgresStore({ connectionString: server.url, schema, retryMs: 200 })
    await add(store, 't')
    const limited = new URL(server.url)
    limited.searchParams.set('options', '-c default_transaction_read_only=on')
    expect(
      await codeOf(postgresStore({ connectionString: limited.href, schema, retryMs: 200 })),
    ).toBe('STORE_READ_ONLY')
    await store.close()
  })
})
