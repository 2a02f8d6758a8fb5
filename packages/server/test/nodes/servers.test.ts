import { createServer, request as httpRequest, type Server } from 'node:http'
import { type AddressInfo } from 'node:net'
import {
  createRuntime,
  memoryStore,
  type EmbeddedRuntime,
  type Store,
  memoryGovernanceKeys,
} from '@skein/runtime'
import { createClient } from '@skein/server/client'
import { createHttp, serve, type Serving } from '@skein/server'
import { afterEach, expect, test } from 'vitest'
import { agentOf } from '../../../runtime/test/api/machine.ts'
import { Cluster, Network, paced, SECRET, shared } from './cluster.ts'

const KEY = 'a-key-of-a-client-long-enough'
const auth = { keys: [{ key: KEY, tenant: 'acme', scopes: ['admin', 'metrics:read'] as const }] }
const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

const words = Array.from({ length: 150 }, (_, index) => `w${index}`).join(' ')
const agents = () => [
  agentOf(
    'talker',
    paced(8, () => words),
  ),
]

/** Returns a port that is free. */
async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

interface Served {
  readonly runtime: EmbeddedRuntime
  readonly serving: Serving
}

async function serveNode(name: string, store: Store, network: Network): Promise<Served> {
  const port = await freePort()
  const runtime = await createRuntime({
    agents: agents(),
    store: shared(store),
    owner: name,
    nodes: { link: network.link(), address: `http://127.0.0.1:${port}`, secret: SECRET, name },
  })
  await runtime.start()
  const serving = await serve(runtime, { port, auth })
  cleanups.push(async () => {
    await serving.close({ graceMs: 100 })
    await runtime.stop({ graceMs: 0 })
  })
  return { runtime, serving }
}

/** Passes each request to the next server that is ready. */
async function roundRobin(ports: () => readonly number[]): Promise<string> {
  let turn = 0
  const server: Server = createServer((incoming, outgoing) => {
    const all = ports()
    const port = all[turn++ % all.length]
    const { method, url, headers } = incoming
    const passed = httpRequest(
      { host: '127.0.0.1', port, method, path: url, headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode!, answer.headers)
        answer.pipe(outgoing)
        answer.on('error', () => outgoing.destroy())
      },
    )
    passed.on('error', () => outgoing.destroy())
    outgoing.on('close', () => passed.destroy())
    incoming.pipe(passed)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanups.push(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test(
  'one of two servers is drained: clients behind a proxy lose nothing',
  { timeout: 60_000 },
  async () => {
    const store = memoryStore()
    const network = new Network()
    const a = await serveNode('a', store, network)
    const b = await serveNode('b', store, network)
    let ready = [a, b]
    const url = await roundRobin(() => ready.map(({ serving }) => serving.port))
    const client = createClient({ url, apiKey: KEY })
    const threads = await Promise.all(
      Array.from({ length: 6 }, () => client.threads.create({ agent: 'talker' })),
    )
    const reading = threads.flatMap(({ id }) =>
      [0, 1].map(async () => {
        const events: { id: string; type: string; text: string }[] = []
        for await (const { id: eventId, event } of client.stream(id, { untilParked: true }))
          events.push({
            id: eventId,
            type: event.type,
            text: event.type === 'text_delta' ? event.text : '',
          })
        return { id, events }
      }),
    )
    for (const { id } of threads) await client.threads.send(id, 'hi')
    await new Promise((resolve) => setTimeout(resolve, 300))
    // The first node is taken out of the proxy, then it stops while its threads are in the middle of a step.
    const readiness = () => fetch(`${a.serving.url}/readyz`).then(({ status }) => status)
    expect(await readiness()).toBe(200)
    ready = [b]
    const stopping = a.runtime.stop({ graceMs: 50 })
    expect(await readiness()).toBe(503)
    await stopping
    await a.serving.close({ graceMs: 100 })
    for (const { id, events } of await Promise.all(reading)) {
      const log = await store.events(id)
      const stored = events.filter(({ type }) => type !== 'text_delta')
      expect(stored.map((event) => Math.trunc(Number(event.id)))).toEqual(log.map(({ seq }) => seq))
      const reset = events.findLastIndex(({ type }) => type === 'step_reset')
      const said = events
        .slice(reset + 1)
        .map(({ text }) => text)
        .join('')
      expect(said).toBe(words)
    }
    for (const { id } of threads) expect((await store.head(id))?.attempts).toBe(0)
  },
)

test('only a node with the secret reads the live state; clients with a key do not', async () => {
  const cluster = new Cluster({ http: { auth } })
  cleanups.push(() => cluster.stop())
  const { http, runtime } = await cluster.add('a', { agents: agents() })
  const { id } = await runtime.threads.create({ agent: 'talker', tenant: 'acme' })
  const get = async (key?: string, path = `/nodes/live/${id}`) => {
    const headers = new Headers(key === undefined ? {} : [['authorization', `Bearer ${key}`]])
    const leaving = new AbortController()
    const { signal } = leaving
    const { status, headers: got } = await http.fetch(
      new Request(`http://a.test${path}`, { headers, signal }),
    )
    leaving.abort()
    return [status, got.get('content-type')?.split(';')[0]]
  }
  expect(await get(SECRET)).toEqual([200, 'text/event-stream'])
  expect(await get()).toEqual([401, 'application/json'])
  expect(await get(KEY)).toEqual([401, 'application/json'])
  expect(await get(`${SECRET}x`)).toEqual([401, 'application/json'])
  // The secret of the nodes is no key of a client.
  expect(await get(SECRET, `/threads/${id}`)).toEqual([401, 'application/json'])
  expect(Object.keys(http.openapi()['paths'] as object).join(' ')).not.toContain('/nodes/')
  const metrics = await http.fetch(
    new Request('http://a.test/metrics', { headers: { authorization: `Bearer ${KEY}` } }),
  )
  expect(await metrics.text()).toContain('skein_node_info{node="a"} 1')

  const alone = await createRuntime({ agents: agents() })
  cleanups.push(() => alone.stop())
  const single = createHttp(alone, { auth })
  const request = new Request(`http://localhost/nodes/live/${id}`, {
    headers: { authorization: `Bearer ${SECRET}` },
  })
  expect((await single.fetch(request)).status).toBe(404)
})

test('nodes that do not have the same keys do not start', async () => {
  const store = memoryStore()
  const key = (byte: number) => Buffer.alloc(32, byte).toString('base64')
  const keys = memoryGovernanceKeys({ seed: 'one' })
  const open = (options: object, secret = SECRET, replacesKeys = false) =>
    createRuntime({
      agents: agents(),
      store: shared(store),
      secretKey: key(1),
      keys,
      nodes: { link: new Network().link(), secret, replacesKeys },
      ...options,
    })
  await open({})
  await open({})
  await expect(open({ secretKey: key(2) })).rejects.toMatchObject({
    code: 'NODE_KEYS_DIFFER',
    message: expect.stringMatching(/: the secret key \(`secretKey`\)\.$/) as string,
  })
  const others = memoryGovernanceKeys({ seed: 'two' })
  await expect(open({ keys: others }, `${SECRET}-other`)).rejects.toMatchObject({
    message: expect.stringMatching(
      /signs approvals.*signs audit logs.*secret of the nodes/,
    ) as string,
    hint: expect.stringContaining('nodes.replacesKeys') as string,
  })
  await expect(open({}, 'too short')).rejects.toMatchObject({ code: 'INPUT_INVALID' })
  // The secret key is replaced while nodes run: first all can open with the new one, then it seals.
  await open({ oldSecretKeys: [key(2)] })
  await open({ secretKey: key(2), oldSecretKeys: [key(1)] })
  await open({ oldSecretKeys: [key(2)] })
  await open({ secretKey: key(2), oldSecretKeys: [key(1)] })
  await expect(open({})).rejects.toMatchObject({ code: 'NODE_KEYS_DIFFER' })
  // All others are replaced by a node that starts alone.
  await open({ secretKey: key(2), keys: others }, SECRET, true)
  await open({ secretKey: key(2), keys: others })
  await expect(open({ secretKey: key(2) })).rejects.toMatchObject({ code: 'NODE_KEYS_DIFFER' })
})

test('of nodes that start at once on an empty store, all have the keys that the first made', async () => {
  const store = memoryStore()
  const network = new Network()
  const runtimes = await Promise.all(
    Array.from({ length: 4 }, (_, index) =>
      createRuntime({
        agents: agents(),
        store: shared(store),
        owner: `n${index}`,
        nodes: { link: network.link(), secret: SECRET },
      }),
    ),
  )
  expect(runtimes.length).toBe(4)
  const made = (await store.setting('governance_keys'))?.['approvals'] as { kid: string }
  expect(await store.setting('nodes')).toMatchObject({ approvals: made.kid })
})
