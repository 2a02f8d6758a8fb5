import { connect, type Socket } from 'node:net'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { serve, type Serving } from '../../src/index.ts'
import { manualTimers } from '@skein/runtime/testing'
import { KEYS, startKit, type Kit } from './http-kit.ts'
import { OpenApiClient, type Operation } from './openapi-client.ts'
import { buildWorld, type World } from './world.ts'

const REQUESTS = process.env['SKEIN_DEEP'] ? 10_000 : 2000
const errors: unknown[] = []
const onError = (error: unknown): void => void errors.push(error)

let kit: Kit
let world: World
let client: OpenApiClient
let serving: Serving

beforeAll(async () => {
  const limits = {
    requestsPerMinute: Infinity,
    requestsPerMinutePerAddress: Infinity,
    maxStreamsPerClient: 5000,
  }
  kit = await startKit({ http: { onError, limits }, runtime: { onError } })
  world = await buildWorld(kit)
  client = new OpenApiClient(kit.http.openapi())
  serving = await serve(kit.runtime, { port: 0, auth: { keys: Object.values(KEYS) }, onError })
})
afterAll(async () => {
  await serving.close({ graceMs: 0 })
  await kit.stop()
})

const nasty = fc.constantFrom(
  '',
  '.',
  '..',
  '../..',
  '..%2f..%2fetc%2fpasswd',
  '%2e%2e/%2e%2e/etc/passwd',
  '....//',
  'a/../../b',
  '/etc/passwd',
  '\0',
  'a\0b',
  '%00',
  '%',
  '%zz',
  '%c0%ae',
  '\\..\\..',
  'C:\\x',
  'a\r\nset-cookie: x=y',
  '\u2028',
  '\ud800',
  '💥',
  'x'.repeat(3000),
  '__proto__',
  'constructor',
  'toString',
  'null',
  'undefined',
  '-1',
  '0',
  '1e309',
  '9'.repeat(30),
  "' or 1=1 --",
  '<script>',
  '{}',
  '[]',
  'true',
)
const junk = fc.oneof(nasty, fc.string({ unit: 'binary', maxLength: 40 }), fc.nat().map(String))
const json = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }),
  fc.constant(JSON.parse('{"__proto__":{"x":1},"constructor":{"prototype":{"y":1}}}')),
)

/** A request that is mostly right, with something wrong in it. */
function requestOf(operation: Operation): fc.Arbitrary<{ path: string; init: RequestInit }> {
  const real = fc.constantFrom(...Object.values(world.params))
  const params = fc.record(
    Object.fromEntries(
      operation.params.map((name) => [
        name,
        fc.oneof(
          { weight: 3, arbitrary: fc.constant(world.params[name]!) },
          { weight: 2, arbitrary: junk },
          { weight: 1, arbitrary: real },
        ),
      ]),
    ),
  )
  const query = fc.dictionary(
    fc.constantFrom(...Object.keys(operation.query), 'x'),
    fc.oneof(junk, fc.constantFrom('1', '5', 'true', 'parked', 'thread', '1(2)')),
    { maxKeys: 3 },
  )
  const properties = JSON.stringify(operation.body?.schema ?? {}).matchAll(/"(\w+)":/g)
  const keys = [...new Set([...properties].map(([, key]) => key!)), 'agent', 'text', 'type']
  const body = fc.oneof(
    fc.constant(JSON.stringify(operation.body?.example ?? { agent: 'desk' })),
    json.map((value) => JSON.stringify(value)),
    fc
      .dictionary(fc.constantFrom(...keys), fc.oneof(json, junk))
      .map((value) => JSON.stringify(value)),
    fc.string({ unit: 'binary' }),
    fc.uint8Array({ maxLength: 200 }),
    fc.constant('{"a":'.repeat(5000)),
  )
  const type = fc.constantFrom(
    'application/json',
    'application/json; charset=utf-8',
    'text/plain',
    'multipart/form-data',
    'application/jsonl',
    '',
  )
  const headers = fc.dictionary(
    fc.constantFrom(
      'last-event-id',
      'if-none-match',
      'accept',
      'content-length',
      'transfer-encoding',
      'x-http-method-override',
      'range',
      'expect',
    ),
    fc.oneof(
      fc.string({ unit: 'grapheme-ascii', maxLength: 50 }),
      fc.constantFrom('*', '1.5', '1(1(1))', '"x"', 'bytes=0-1'),
    ),
    { maxKeys: 2 },
  )
  const method = fc.oneof(
    { weight: 9, arbitrary: fc.constant(operation.method) },
    {
      weight: 1,
      // Not DELETE: without its thread the rest would be refused for that alone.
      arbitrary: fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'HEAD', 'OPTIONS'),
    },
  )
  const who = fc.constantFrom(
    KEYS.acme.key,
    KEYS.ada.key,
    KEYS.rival.key,
    KEYS.reader.key,
    'nonsense',
  )
  return fc.record({ params, query, body, type, headers, method, who }).map((it) => {
    const isBare = it.method === 'GET' || it.method === 'HEAD'
    const rest = (name: string, value: string): string =>
      operation.rest.includes(name) ? value : encodeAll(value)
    const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) =>
      rest(name, it.params[name]!),
    )
    const search = new URLSearchParams(it.query).toString()
    const plain = Object.entries(it.headers).map(([name, value]) => [
      name,
      value.replace(/[^\x20-\x7e]/g, ''),
    ])
    return {
      path: `${path}${search ? `?${search}` : ''}`,
      init: {
        method: it.method,
        headers: {
          ...Object.fromEntries(plain),
          authorization: `Bearer ${it.who}`,
          ...(!isBare && it.type && { 'content-type': it.type }),
        },
        ...(!isBare && { body: it.body as BodyInit }),
      },
    }
  })
}

function encodeAll(text: string): string {
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, '?'))
}

test(`${REQUESTS} random requests: no failure of the server, and every refusal in its shape`, async () => {
  const safe = client.operations.filter(
    ({ id }) => id !== 'deleteThread' && id !== 'eraseThread' && id !== 'terminateThread',
  )
  const statuses = new Map<number, number>()
  const any = fc.constantFrom(...safe).chain(requestOf)
  await fc.assert(
    fc.asyncProperty(any, async ({ path, init }) => {
      const request = buildable(path, init)
      if (!request) return
      // A stream that waits for more would never end.
      const response = await kit.http.fetch(request)
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1)
      expect(response.status, `${init.method} ${path} ${String(init.body).slice(0, 200)}`).not.toBe(
        500,
      )
      const type = response.headers.get('content-type') ?? ''
      // Only signing in and out of Studio sets a cookie.
      if (!path.includes('/studio/session')) expect(response.headers.get('set-cookie')).toBeNull()
      expect(response.headers.get('x-content-type-options')).toBe('nosniff')
      if (type.startsWith('text/event-stream')) return void (await response.body?.cancel())
      const text = await response.text()
      if (response.status < 400 || init.method === 'HEAD') return
      const { error } = JSON.parse(text) as { error: { code: string; message: string } }
      expect([typeof error.code, typeof error.message]).toEqual(['string', 'string'])
      expect(text).not.toMatch(/node_modules|\.ts:|\/work\/|\/home\/|at \w+ \(/)
    }),
    { numRuns: REQUESTS, endOnFailure: true },
  )
  expect(errors).toEqual([])
  // Enough of them got past the gate to mean something.
  const counted = (from: number, to: number): number =>
    [...statuses]
      .filter(([status]) => status >= from && status < to)
      .reduce((sum, [, count]) => sum + count, 0)
  expect(counted(200, 300)).toBeGreaterThan(REQUESTS / 50)
  expect(counted(400, 500)).toBeGreaterThan(REQUESTS / 5)
}, 300_000)

/** Some texts no client could even send. */
function buildable(path: string, init: RequestInit): Request | undefined {
  try {
    return new Request(`http://localhost${path}`, init)
  } catch {
    return undefined
  }
}

test.each([
  '/threads/{threadId}/files/../../../etc/passwd',
  '/threads/{threadId}/files/%2e%2e/%2e%2e/etc/passwd',
  '/threads/{threadId}/files/..%2f..%2fetc%2fpasswd',
  '/threads/{threadId}/files/..%5c..%5cetc',
  '/threads/{threadId}/files/a%00.txt',
  '/threads/{threadId}/files/a%0d%0ax:y',
  '/threads/{threadId}/files//',
  '/threads/..%2f{threadId}',
  '/threads/%2e%2e/threads/{threadId}/../../x',
])('%s is no file of a thread', async (path) => {
  const raw = path.replace('{threadId}', world.threadId)
  const answer = await rawRequest(
    `GET ${raw} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${KEYS.acme.key}\r\nconnection: close\r\n\r\n`,
  )
  expect(answer).toMatch(/^HTTP\/1\.1 (400|404|405)/)
  expect(answer).not.toContain('root:')
})

test('a name and a type with line breaks come back as no header', async () => {
  const name = encodeURIComponent('x";\u2603.html')
  const path = `/threads/${world.threadId}/files/${name}`
  const type = 'text/html; charset="a"'
  expect(
    (await kit.ask('acme', 'PUT', path, '<script>1</script>', { 'content-type': type })).status,
  ).toBe(200)
  const response = await kit.ask('acme', 'GET', path)
  expect(response.headers.get('content-disposition')).toMatch(/^attachment/)
  expect(response.headers.get('content-type')).toBe('application/octet-stream')
  expect(response.headers.get('content-security-policy')).toContain('sandbox')
})

test('a body that does not arrive is given up', async () => {
  const timers = manualTimers()
  const slow = await startKit({ http: { timers } })
  const { id } = await slow.runtime.threads.create({ agent: 'desk', tenant: 'acme' })
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode('{')),
  })
  const init = {
    method: 'POST',
    body,
    duplex: 'half',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${KEYS.acme.key}` },
  }
  const answer = slow.http.fetch(
    new Request(`http://localhost/threads/${id}/messages`, init as RequestInit),
  )
  while (timers.pending().length === 0) await new Promise((resolve) => setImmediate(resolve))
  await timers.advance(30_000)
  expect((await answer).status).toBe(408)
  expect((await answer).headers.get('connection')).toBe('close')
  expect(timers.pending()).toEqual([])
  await slow.stop()
})

test('a body that says it is small and is not is cut at the limit', async () => {
  const chunk = new Uint8Array(64 * 1024)
  let sent = 0
  const body = new ReadableStream({
    pull(controller) {
      sent += chunk.length
      controller.enqueue(chunk)
    },
  })
  const init = {
    method: 'POST',
    body,
    duplex: 'half',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${KEYS.acme.key}` },
  }
  const response = await kit.http.fetch(
    new Request(`http://localhost/threads/${world.threadId}/messages`, init as RequestInit),
  )
  expect(response.status).toBe(413)
  expect(sent).toBeLessThan(2 * 1024 * 1024)
})

test('what is not HTTP, or has no host, or two, gets no answer worth having', async () => {
  expect(await rawRequest('nonsense\r\n\r\n')).toMatch(/^HTTP\/1\.1 400/)
  expect(await rawRequest('GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n')).toMatch(
    /^HTTP\/1\.1 400/,
  )
  expect(
    await rawRequest('GET /healthz HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n'),
  ).toMatch(/^HTTP\/1\.1 403/)
  expect(
    await rawRequest(
      'GET http://evil.example/healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n',
    ),
  ).toMatch(/^HTTP\/1\.1 403/)
  expect(
    await rawRequest('GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n'),
  ).toMatch(/^HTTP\/1\.1 200/)
})

function rawRequest(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket: Socket = connect(serving.port, '127.0.0.1', () => socket.write(text))
    socket.on('data', (data) => (answer += data.toString('latin1')))
    socket.on('close', () => resolve(answer))
    socket.on('error', reject)
  })
}
