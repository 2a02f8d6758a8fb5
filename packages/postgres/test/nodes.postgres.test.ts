import { says, scripted } from '@skein/ai/testing'
import { postgresLink, postgresStore, pollingLink } from '@skein/postgres'
import {
  createRuntime,
  isStoreError,
  memoryGovernanceKeys,
  type NodeLink,
  type NodeNotice,
} from '@skein/runtime'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { agentOf } from '../../runtime/test/api/machine.ts'
import { add, event, valuesOf } from './kit.ts'
import { startProxy } from './proxy.ts'
import { newSchema, noPostgres, startPostgres, type TestPostgres } from './server.ts'

describe.skipIf(noPostgres !== undefined)('several nodes on one database', () => {
  let server: TestPostgres
  beforeAll(async () => {
    server = await startPostgres()
  }, 60_000)
  afterAll(() => server.stop(), 60_000)
  const open = (schema: string) => postgresStore({ connectionString: server.url, schema })

  test('nodes that start together create the tables once', async () => {
    const schema = newSchema()
    const stores = await Promise.all(Array.from({ length: 6 }, () => open(schema)))
    await Promise.all(stores.map((store, index) => add(store, `t${index}`)))
    expect(await stores[0]!.list({})).toHaveLength(6)
    await Promise.all(stores.map((store) => store.close()))
  })

  test('a schema of a newer program, and one of another program, are refused', async () => {
    const schema = newSchema()
    await (await open(schema)).close()
    const admin = new pg.Client({ connectionString: server.url })
    await admin.connect()
    await admin.query(`UPDATE ${schema}.store_version SET version = 99`)
    const refusal = await open(schema).catch((error: unknown) => error)
    expect(isStoreError(refusal, 'STORE_VERSION'), String(refusal)).toBe(true)
    const other = newSchema()
    await admin.query(`CREATE SCHEMA ${other}; CREATE TABLE ${other}.theirs (id int)`)
    const foreign = await open(other).catch((error: unknown) => error)
    expect(isStoreError(foreign, 'STORE_CORRUPT'), String(foreign)).toBe(true)
    await admin.end()
  })

  test('a role without the right to create schemas uses one that was made for it', async () => {
    const schema = newSchema()
    const admin = new pg.Client({ connectionString: server.url })
    await admin.connect()
    await admin.query(`CREATE ROLE limited LOGIN PASSWORD 'limited'`)
    await admin.query(`CREATE SCHEMA ${schema} AUTHORIZATION limited`)
    await admin.end()
    const url = new URL(server.url)
    url.username = url.password = 'limited'
    const store = await postgresStore({ connectionString: url.href, schema })
    await add(store, 't')
    expect((await store.head('t'))?.id).toBe('t')
    await store.close()
    const refusal = await postgresStore({ connectionString: url.href, schema: newSchema() }).catch(
      (error: unknown) => error,
    )
    expect(isStoreError(refusal, 'STORE_READ_ONLY'), String(refusal)).toBe(true)
  })

  test('60 crossing commits of parents and children from two nodes: none fails', async () => {
    const schema = newSchema()
    const stores = [await open(schema), await open(schema)]
    await add(stores[0]!, 'parent')
    await add(stores[0]!, 'child')
    const commits = Array.from({ length: 60 }, (_, index) => {
      const ids = index % 2 === 0 ? ['parent', 'child'] : ['child', 'parent']
      return stores[(index >> 1) % 2]!.commit({
        point: 'test',
        threads: ids.map((id) => ({ id, append: [event(index)] })),
        audit: [{ tree: 'parent', requestId: `r${index}`, seq: 0, line: 'x' }],
        counters: [{ name: 'limit a', add: 1 }],
      })
    })
    const outcomes = await Promise.allSettled(commits)
    expect(outcomes.filter(({ status }) => status === 'rejected')).toEqual([])
    for (const id of ['parent', 'child'])
      expect((await valuesOf(stores[0]!, id)).toSorted()).toEqual(
        Array.from({ length: 60 }, (_, index) => index).toSorted(),
      )
    expect(await stores[1]!.audit('parent')).toHaveLength(60)
    expect((await stores[1]!.counters('limit ')).get('limit a')).toBe(60)
    await Promise.all(stores.map((store) => store.close()))
  }, 60_000)

  test('of two nodes that use one client id, token or thread id, one is refused for that reason', async () => {
    const schema = newSchema()
    const stores = [await open(schema), await open(schema)]
    const codes = async (commits: readonly Promise<unknown>[]) =>
      (await Promise.allSettled(commits))
        .map((outcome) =>
          outcome.status === 'fulfilled' ? 'ok' : (outcome.reason as { code: string }).code,
        )
        .toSorted()
    for (let round = 0; round < 10; round++) {
      const create = (id: string, clientId: string | null) => ({
        id,
        create: {
          tenant: 'acme',
          owner: null,
          agent: 'a',
          parentId: null,
          rootId: id,
          title: null,
          tags: [],
          clientId,
          createdAt: 1,
        },
      })
      const both = (change: (node: number) => ReturnType<typeof create>) =>
        stores.map((store, node) => store.commit({ point: 'test', threads: [change(node)] }))
      expect(await codes(both((node) => create(`${round}-${node}`, `c${round}`)))).toEqual([
        'CLIENT_ID_TAKEN',
        'ok',
      ])
      expect(await codes(both(() => create(`same ${round}`, null)))).toEqual([
        'THREAD_EXISTS',
        'ok',
      ])
      const spent = [{ jti: `j${round}`, exp: 1 }]
      expect(
        await codes(stores.map((store) => store.commit({ point: 'test', threads: [], spent }))),
      ).toEqual(['TOKEN_SPENT', 'ok'])
    }
    await Promise.all(stores.map((store) => store.close()))
  }, 60_000)

  test('a thread that another node holds is not due here; the end of its lease is the next time', async () => {
    const schema = newSchema()
    const [one, two] = [await open(schema), await open(schema)]
    await add(one, 't', { by: 5 })
    await add(one, 'u', { by: 6 })
    await one.claim('t', { owner: 'one', leaseMs: 400 })
    const now = Date.now()
    expect(await one.due(now, 9)).toEqual(['t', 'u'])
    expect(await two.due(now, 9)).toEqual(['u'])
    const next = (await two.nextWake(now)) ?? 0
    expect(next - now).toBeGreaterThan(0)
    expect(next - now).toBeLessThanOrEqual(500)
    await new Promise((resolve) => setTimeout(resolve, 450))
    expect(await two.due(now, 9)).toEqual(['t', 'u'])
    await Promise.all([one.close(), two.close()])
  })

  test('20 messages to one thread from two nodes: the model is asked once per turn, none is lost', async () => {
    const schema = newSchema()
    let running = 0
    let most = 0
    let asked = 0
    const model = scripted(async () => {
      asked += 1
      most = Math.max(most, ++running)
      await new Promise((resolve) => setTimeout(resolve, 60))
      running -= 1
      return says('Yes.')
    })
    const agents = [agentOf('mine', model)]
    const keys = memoryGovernanceKeys({ seed: 'nodes' })
    const secretKey = new Uint8Array(32)
    const nodes = await Promise.all(
      [0, 1].map(async () => createRuntime({ agents, keys, secretKey, store: await open(schema) })),
    )
    for (const node of nodes) await node.start()
    const { id } = await nodes[0]!.threads.create({ agent: 'mine' })
    const texts = Array.from({ length: 20 }, (_, index) => `message ${index}`)
    for (const [index, text] of texts.entries()) {
      await nodes[index % 2]!.threads.send(id, text)
      await new Promise((resolve) => setTimeout(resolve, 15))
    }
    // A message that comes while the other node works is taken up by that node.
    const until = Date.now() + 20_000
    const store = await open(schema)
    while (Date.now() < until) {
      const head = await store.head(id)
      if (head?.lifecycle === 'idle' && head.wakeAt === null) break
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    const events = (await store.events(id)).map((stored) => stored.event)
    const queued = events.filter(({ type }) => type === 'message_queued')
    expect(queued).toHaveLength(20)
    expect((await store.head(id))?.lifecycle).toBe('idle')
    expect(most).toBe(1)
    const ends = events.filter(({ type }) => type === 'session_end')
    expect(asked).toBe(ends.length)
    const seen = JSON.stringify(model.requests.at(-1)?.messages)
    for (const text of texts) expect(seen).toContain(`"${text}"`)
    for (const node of nodes) await node.stop()
    await store.close()
  }, 60_000)
})

describe.skipIf(noPostgres !== undefined)('the link between nodes', () => {
  let server: TestPostgres
  beforeAll(async () => {
    server = await startPostgres()
  }, 60_000)
  afterAll(() => server.stop(), 60_000)

  async function started(link: NodeLink) {
    const heard: NodeNotice[] = []
    let gaps = 0
    await link.start({ notice: (notice) => heard.push(notice), gap: () => (gaps += 1) })
    return { link, heard, gaps: () => gaps }
  }

  const eventually = async (isTrue: () => boolean) => {
    const until = Date.now() + 10_000
    while (!isTrue() && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 5))
    expect(isTrue()).toBe(true)
  }

  const committed = (threadId: string, seq: number, isDue = false): NodeNotice => ({
    type: 'committed',
    threadId,
    seq,
    isDue,
  })

  test('notices reach the other nodes of the store, not the sender and not other stores', async () => {
    const url = server.url
    const one = await started(postgresLink({ connectionString: url, schema: 'a' }))
    const two = await started(postgresLink({ connectionString: url, schema: 'a' }))
    const other = await started(postgresLink({ connectionString: url, schema: 'b' }))
    expect(one.gaps()).toBe(1) // whatever came before the connection
    one.link.send(committed('t', 3, true))
    one.link.send(committed('t', 4))
    one.link.send({ type: 'interrupt', threadId: 't', reason: 'stopped' })
    one.link.send({ type: 'removed', threadId: 'ü\u{1F9F6}' })
    await eventually(() => two.heard.length === 3)
    expect(two.heard).toEqual([
      committed('t', 4, true), // the later number, still due
      { type: 'interrupt', threadId: 't', reason: 'stopped' },
      { type: 'removed', threadId: 'ü\u{1F9F6}' },
    ])
    two.link.send(committed('u', 1))
    await eventually(() => one.heard.length === 1)
    expect([one.heard.length, other.heard.length]).toEqual([1, 0])
    for (const { link } of [one, two, other]) await link.stop()
    one.link.send(committed('late', 1)) // does nothing
  })

  test('5000 notices arrive in few notifications, each below the limit of the server', async () => {
    const url = server.url
    const one = await started(postgresLink({ connectionString: url }))
    const two = await started(postgresLink({ connectionString: url }))
    const listener = new pg.Client({ connectionString: url })
    await listener.connect()
    const channel = await listener.query<{ channel: string }>(
      `SELECT 'skein_' || left(encode(sha256('skein'), 'hex'), 16) AS channel`,
    )
    const sizes: number[] = []
    listener.on('notification', ({ payload }) => sizes.push(Buffer.byteLength(payload ?? '')))
    await listener.query(`LISTEN ${channel.rows[0]!.channel}`)
    for (let i = 0; i < 5000; i++) one.link.send(committed(`thread ${i}`, i))
    await eventually(() => two.heard.length === 5000)
    expect(two.heard.map((notice) => notice.threadId)).toEqual(
      Array.from({ length: 5000 }, (_, index) => `thread ${index}`),
    )
    await eventually(() => sizes.length > 40)
    expect(Math.max(...sizes)).toBeLessThan(8000)
    expect(sizes.length).toBeLessThan(100)
    await listener.end()
    for (const { link } of [one, two]) await link.stop()
  }, 30_000)

  test('a link whose connection is cut connects again, calls gap, and sends what waits', async () => {
    const proxy = await startProxy(server.url)
    const one = await started(postgresLink({ connectionString: proxy.url }))
    const two = await started(postgresLink({ connectionString: server.url }))
    proxy.cutAll()
    one.link.send(committed('t', 1))
    await eventually(() => two.heard.length === 1)
    await eventually(() => one.gaps() === 2)
    two.link.send(committed('t', 2))
    await eventually(() => one.heard.length === 1)
    for (const { link } of [one, two]) await link.stop()
    await proxy.stop()
  }, 30_000)

  test('a link that starts without a server connects when there is one', async () => {
    const own = await startPostgres()
    await own.kill9()
    const one = await started(postgresLink({ connectionString: own.url }))
    expect(one.gaps()).toBe(0)
    await own.restart()
    await eventually(() => one.gaps() === 1)
    await one.link.stop()
    await own.stop()
  }, 60_000)

  test('a polling link calls gap again and again until it is stopped', async () => {
    const { link, gaps } = await started(pollingLink({ everyMs: 5 }))
    await eventually(() => gaps() > 2)
    await link.stop()
    const before = gaps()
    await new Promise((resolve) => setTimeout(resolve, 30))
    expect(gaps()).toBe(before)
  })
})
