import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { pickTransport } from './pick-transport.ts'

let server: Server
let url = ''
const agents: (string | undefined)[] = []

beforeAll(async () => {
  server = createServer((request, response) => {
    agents.push(request.headers['user-agent'])
    request.resume()
    response.end('ok')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
})

afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const dispatcher = Symbol.for('undici.globalDispatcher.1')
const globals = globalThis as Record<symbol, unknown>
afterEach(() => {
  delete process.env['HTTP_PROXY']
})

/** The two clients name themselves differently. */
async function clientOf(): Promise<'fast' | 'fetch'> {
  const { signal } = new AbortController()
  const request = { url, method: 'POST', headers: {}, body: '{}', signal } as const
  const { body } = await pickTransport({}).send(request)
  while (await body.read());
  return agents.at(-1) === 'skein' ? 'fast' : 'fetch'
}

test('Node without anything special takes the fast client', async () => {
  expect(await clientOf()).toBe('fast')
})

test('also after the platform made its own dispatcher for its first fetch', async () => {
  await (await fetch(url)).text()
  expect(globals[dispatcher]).toBeDefined()
  expect(await clientOf()).toBe('fast')
})

test('a fetch in the configuration is used', async () => {
  let used = 0
  const transport = pickTransport({ fetch: async () => (used++, new Response('mine')) })
  const { signal } = new AbortController()
  const { body } = await transport.send({ url, method: 'POST', headers: {}, signal })
  expect([new TextDecoder().decode(await body.read()), used]).toEqual(['mine', 1])
})

test('a replaced global fetch is used', async () => {
  const original = globalThis.fetch
  globalThis.fetch = (input, init) => original(input, init)
  try {
    expect(await clientOf()).toBe('fetch')
  } finally {
    globalThis.fetch = original
  }
})

test('a dispatcher that was set on purpose is used, whichever way it is special', async () => {
  await (await fetch(url)).text()
  const original = globals[dispatcher] as { constructor: new (options?: object) => object }
  const Agent = original.constructor
  const composed = new Proxy(original, {
    get: (target, name) =>
      name === 'dispatch'
        ? (...parts: unknown[]) =>
            (target as unknown as { dispatch: (...parts: unknown[]) => unknown }).dispatch(...parts)
        : Reflect.get(target, name),
  })
  class ProxyAgent extends Agent {}
  const special = [
    new Agent({ connect: { timeout: 5 } }),
    new Agent({ pipelining: 2 }),
    composed,
    new ProxyAgent(),
  ]
  try {
    for (const one of special) {
      globals[dispatcher] = one
      expect(await clientOf()).toBe('fetch')
    }
    globals[dispatcher] = new Agent()
    expect(await clientOf()).toBe('fast')
  } finally {
    globals[dispatcher] = original
  }
})

test('UPP-015 the body of a hand-written response without a stream is read whole, once', async () => {
  const text = `${'{"a": "é"}'.repeat(20_000)}\n \n`
  const double = { status: 200, headers: new Headers(), text: async () => text } as Response
  const { signal } = new AbortController()
  const request = { url, method: 'POST', headers: {}, body: '{}', signal } as const
  const { body } = await pickTransport({ fetch: async () => double }).send(request)
  const bytes = await body.read()
  expect(new TextDecoder().decode(bytes)).toBe(text)
  expect(await body.read()).toBeUndefined()
})

test('a proxy in the environment is known to the fast client', async () => {
  process.env['HTTP_PROXY'] = url // the server answers as a proxy would
  expect(await clientOf()).toBe('fast')
})
