import { manualClock } from '@skein/base'
import { afterEach, expect, test } from 'vitest'
import { memoryStore } from '@skein/runtime'
import { startKit, type Kit, type KitOptions } from './http-kit.ts'

const kits: Kit[] = []
afterEach(async () => {
  for (const kit of kits.splice(0)) await kit.stop()
})

async function start(options?: KitOptions): Promise<Kit> {
  const kit = await startKit(options)
  kits.push(kit)
  return kit
}

async function threadOf(kit: Kit): Promise<string> {
  return (await kit.runtime.threads.create({ agent: 'desk', tenant: 'acme' })).id
}

test('an address that is none, and a method that is not taken, are refused in JSON', async () => {
  const kit = await start({ http: { prefix: '/api' } })
  const id = await threadOf(kit)
  for (const path of ['/', '/threads', '/api', '/api/nothing', `/api/threads/${id}/nothing`]) {
    const response = await kit.ask('acme', 'GET', path)
    expect([path, response.status, await response.json()]).toMatchObject([
      path,
      404,
      { error: { code: 'ROUTE_NOT_FOUND' } },
    ])
  }
  const wrong = await kit.ask('acme', 'PUT', `/api/threads/${id}`)
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'GET, PATCH, DELETE'])
  expect((await kit.ask('acme', 'GET', `/api/threads/${id}/stop`)).headers.get('allow')).toBe(
    'POST',
  )
})

test('HEAD answers as GET does, without a body and without leaving a stream open', async () => {
  const kit = await start()
  const id = await threadOf(kit)
  const head = await kit.ask('acme', 'HEAD', `/threads/${id}`)
  expect([head.status, await head.text()]).toEqual([200, ''])
  expect((await kit.ask('acme', 'HEAD', `/threads/${id}/stream`)).status).toBe(200)
  expect(await (await kit.ask('acme', 'GET', '/metrics')).text()).toContain(
    'skein_stream_clients 0\n',
  )
})

test('a file has its hash as tag, and is not sent to whom has it', async () => {
  const kit = await start()
  const path = `/threads/${await threadOf(kit)}/files/a/b.txt`
  const written = await kit.ask('acme', 'PUT', path, 'Hello', { 'content-type': 'text/plain' })
  expect(await written.json()).toMatchObject({
    path: '/a/b.txt',
    sizeBytes: 5,
    mediaType: 'text/plain',
  })
  const read = await kit.ask('acme', 'GET', path)
  const etag = read.headers.get('etag')!
  expect([etag, await read.text()]).toEqual([written.headers.get('etag'), 'Hello'])
  expect(read.headers.get('content-disposition')).toMatch(/^inline/)
  for (const tags of [etag, `"x", W/${etag}`, '*']) {
    const again = await kit.ask('acme', 'GET', path, undefined, { 'if-none-match': tags })
    expect([again.status, await again.text()]).toEqual([304, ''])
  }
  expect((await kit.ask('acme', 'GET', path, undefined, { 'if-none-match': '"x"' })).status).toBe(
    200,
  )
})

test('an endpoint of an agent gets its parameters and the state of the thread, and not the key', async () => {
  const kit = await start()
  const id = await threadOf(kit)
  expect(await kit.json('acme', 'GET', `/threads/${id}/x/orders/7`)).toEqual({
    id: '7',
    thread: id,
    key: null,
  })
  const kept = await kit.ask('acme', 'POST', `/threads/${id}/x/orders`, { order: 1 })
  expect([kept.status, await kept.text()]).toEqual([201, 'kept'])
  expect(await kit.json('acme', 'GET', `/threads/${id}/values/order`)).toEqual({
    value: { order: 1 },
  })
  expect((await kit.ask('reader', 'POST', `/threads/${id}/x/orders`, {})).status).toBe(403)
})

test('too many requests of one client, or from one address, are put off', async () => {
  const clock = manualClock(1_000)
  const kit = await start({ http: { clock, limits: { requestsPerMinute: 3 } } })
  const codes = async (who: 'acme' | 'ada'): Promise<number> =>
    (await kit.ask(who, 'GET', '/threads')).status
  expect([await codes('acme'), await codes('acme'), await codes('acme')]).toEqual([200, 200, 200])
  const late = await kit.ask('acme', 'GET', '/threads')
  expect([late.status, late.headers.get('retry-after')]).toEqual([429, '20'])
  expect(await codes('ada')).toBe(200)
  clock.advance(20_000)
  expect(await codes('acme')).toBe(200)

  const byAddress = await start({
    http: { clock, limits: { requestsPerMinutePerAddress: 2 } },
    connection: { address: '10.0.0.1' },
  })
  const statuses = await Promise.all(
    [1, 2, 3].map(() => byAddress.ask(undefined, 'GET', '/healthz')),
  )
  expect(statuses.map(({ status }) => status)).toEqual([200, 200, 429])
})

test('pages of an allowed origin may call and read, after asking; others are told nothing', async () => {
  const kit = await start({ http: { cors: { origins: ['https://app.example'] } } })
  const origin = 'https://app.example'
  const asked = await kit.ask(undefined, 'OPTIONS', '/threads', undefined, {
    origin,
    'access-control-request-method': 'POST',
  })
  expect([asked.status, asked.headers.get('access-control-allow-origin')]).toEqual([204, origin])
  const read = await kit.ask('acme', 'GET', '/threads', undefined, { origin })
  expect([
    read.status,
    read.headers.get('access-control-allow-origin'),
    read.headers.get('vary'),
  ]).toEqual([200, origin, 'origin'])
  expect(read.headers.get('access-control-allow-credentials')).toBeNull()
  const evil = await kit.ask('acme', 'GET', '/threads', undefined, {
    origin: 'https://evil.example',
  })
  expect([evil.status, evil.headers.get('access-control-allow-origin')]).toEqual([403, null])
  const plain = await start()
  expect(
    (
      await plain.ask(undefined, 'OPTIONS', '/threads', undefined, {
        origin,
        'access-control-request-method': 'POST',
      })
    ).status,
  ).toBe(403)
})

test('an error that nobody expected is told by an id alone, and whole to whoever runs the server', async () => {
  const errors: [unknown, string][] = []
  const kit = await start({
    http: {
      auth: () => {
        throw new Error('canary: the database is at 10.0.0.1')
      },
      onError: (error, id) => errors.push([error, id]),
    },
  })
  const response = await kit.ask('acme', 'GET', '/threads')
  const text = await response.text()
  expect([response.status, text]).toEqual([500, expect.not.stringContaining('canary')])
  expect(errors).toEqual([
    [expect.objectContaining({ message: expect.stringContaining('canary') }), expect.any(String)],
  ])
  expect(text).toContain(errors[0]![1])
})

test('metrics count requests, refusals and threads, with no id of a thread in them', async () => {
  const kit = await start()
  const id = await threadOf(kit)
  await kit.runtime.threads.run(id, 'Hello')
  await kit.ask('acme', 'GET', `/threads/${id}`)
  await kit.ask('rival', 'GET', `/threads/${id}`)
  const text = await (await kit.ask('acme', 'GET', '/metrics')).text()
  expect(text).toContain('skein_http_requests_total{route="getThread",status="200"} 1\n')
  expect(text).toContain('skein_http_requests_total{route="getThread",status="404"} 1\n')
  expect(text).toContain('skein_errors_total{code="THREAD_NOT_FOUND"} 1\n')
  expect(text).toContain('skein_threads{lifecycle="idle"} 1\n')
  expect(text).toMatch(/skein_tokens [1-9]\d*\n/)
  expect(text).not.toContain(id)
  for (const line of text.trimEnd().split('\n'))
    expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{(\w+="[^"\n]*",?)+\})? [\d.e+-]+)$/)
  expect((await kit.ask('ada', 'GET', '/metrics')).status).toBe(403)
})

test('metrics read no thread, however many there are', async () => {
  const store = memoryStore()
  const asked: string[] = []
  const watched = new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return (...args: unknown[]) => {
        asked.push(String(name))
        return Reflect.apply(member, target, args) as unknown
      }
    },
  })
  const kit = await start({ runtime: { store: watched } })
  for (let i = 0; i < 3; i++) await threadOf(kit)
  for (let i = 0; i < 2; i++) {
    asked.length = 0
    const text = await (await kit.ask('acme', 'GET', '/metrics')).text()
    expect(text).toContain(`skein_threads{lifecycle="idle"} ${3 + i}\n`)
    // No list: the counts are kept, and they are right at once.
    expect(asked).toEqual(['totals'])
    await threadOf(kit)
  }
})

test('a server that goes down says that it is not ready, and is alive', async () => {
  const kit = await start()
  expect((await kit.ask(undefined, 'GET', '/readyz')).status).toBe(200)
  kit.http.endStreams()
  expect((await kit.ask(undefined, 'GET', '/readyz')).status).toBe(503)
  expect((await kit.ask(undefined, 'GET', '/healthz')).status).toBe(200)
})

test('a wait for a result ends when its time is up', async () => {
  const kit = await start()
  const id = await threadOf(kit)
  await kit.runtime.threads.send(id, 'hang')
  const response = await kit.ask('acme', 'GET', `/threads/${id}/result?waitMs=1`)
  expect(response.status).toBe(204)
  await kit.ask('acme', 'POST', `/threads/${id}/stop`)
  expect(await kit.json('acme', 'GET', `/threads/${id}/result`)).toMatchObject({
    outcome: 'stopped',
  })
})

test('pages served before our routes are served to requests for this machine alone, with their own policy', async () => {
  const kit = await start({
    http: {
      before: (request) =>
        new URL(request.url).pathname === '/'
          ? new Response('<p>', { headers: { 'content-security-policy': "default-src 'self'" } })
          : undefined,
    },
  })
  const page = await kit.ask(undefined, 'GET', '/')
  expect([page.status, page.headers.get('content-security-policy')]).toEqual([
    200,
    "default-src 'self'",
  ])
  expect(page.headers.get('x-content-type-options')).toBe('nosniff')
  expect((await kit.ask(undefined, 'GET', '/', undefined, { host: 'evil.example' })).status).toBe(
    403,
  )
  expect((await kit.ask(undefined, 'GET', '/healthz')).status).toBe(200)
})
