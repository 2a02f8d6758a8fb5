import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { createClient } from '../../src/client/index.ts'
import { serve, type Serving, type ServeOptions } from '../../src/index.ts'
import { manualTimers } from '@skein/runtime/testing'
import { KEYS, startKit, type Kit } from './http-kit.ts'

const cleanups: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

async function start(options: Partial<ServeOptions> = {}): Promise<{ kit: Kit; serving: Serving }> {
  const kit = await startKit()
  const serving = await serve(kit.runtime, {
    port: 0,
    auth: { keys: Object.values(KEYS) },
    ...options,
  })
  cleanups.push(
    () => kit.stop(),
    () => serving.close({ graceMs: 0 }),
  )
  return { kit, serving }
}

test('without keys it serves this machine alone, unless that is meant', async () => {
  const kit = await startKit()
  cleanups.push(() => kit.stop())
  await expect(
    serve(kit.runtime, { port: 0, host: '0.0.0.0', auth: 'none' }),
  ).rejects.toMatchObject({ code: 'AUTH_REQUIRED' })
  const meant = await serve(kit.runtime, {
    port: 0,
    host: '0.0.0.0',
    auth: 'none',
    allowUnauthenticated: true,
  })
  const local = await serve(kit.runtime, { port: 0, auth: 'none', prefix: '/api' })
  cleanups.push(
    () => meant.close(),
    () => local.close(),
  )
  const client = createClient({ url: local.url })
  const thread = await client.threads.create({ agent: 'desk' })
  expect(thread).toMatchObject({ tenant: 'default', owner: null })
  expect((await fetch(`${local.url}/threads/${thread.id}`)).status).toBe(200)
  await expect(serve(kit.runtime, { port: local.port, auth: 'none' })).rejects.toMatchObject({
    code: 'PORT_TAKEN',
  })
})

test('a message travels to the model and back over the network', async () => {
  const { serving } = await start()
  const client = createClient({ url: serving.url, apiKey: KEYS.ada.key })
  const { id } = await client.threads.create({ agent: 'desk' })
  const types: string[] = []
  const reading = (async () => {
    for await (const { event } of client.stream(id)) {
      types.push(event.type)
      if (event.type === 'session_end') return
    }
  })()
  const result = await client.threads.run(id, 'Hello')
  expect(result).toMatchObject({
    outcome: 'completed',
    text: expect.stringContaining('You said: Hello.'),
  })
  await reading
  expect(types).toEqual(
    expect.arrayContaining(['message_queued', 'text_delta', 'message_added', 'session_end']),
  )
})

test('closing ends streams with a word, lets requests finish and takes no more', async () => {
  const { kit, serving } = await start()
  const { id } = await kit.runtime.threads.create({ agent: 'desk', tenant: 'acme' })
  const headers = { authorization: `Bearer ${KEYS.acme.key}` }
  const stream = await fetch(`${serving.url}/threads/${id}/stream`, { headers })
  const text = stream.text()
  // A request whose body is still on its way.
  const socket: Socket = connect(serving.port, '127.0.0.1')
  let answer = ''
  socket.on('data', (data) => (answer += data.toString()))
  socket.on('error', () => undefined)
  const isOver = new Promise((resolve) => socket.on('close', resolve))
  socket.write(
    `POST /threads/${id}/messages HTTP/1.1\r\nhost: localhost\r\nauthorization: ${headers.authorization}\r\ncontent-type: application/json\r\ncontent-length: 16\r\n\r\n`,
  )
  while (
    (await (await fetch(`${serving.url}/metrics`, { headers })).text()).includes(
      'skein_stream_clients 0',
    )
  );
  const closed = serving.close({ graceMs: 60_000 })
  expect(await text).toMatch(/: going down\nretry: 1000\n\n$/)
  socket.write('{"text":"Hello"}')
  await isOver
  expect(answer).toMatch(/^HTTP\/1\.1 202/)
  await closed
  await expect(fetch(`${serving.url}/healthz`)).rejects.toThrow()
})

test('what does not finish is cut when the time is up', async () => {
  const { kit, serving } = await start()
  const { id } = await kit.runtime.threads.create({ agent: 'desk', tenant: 'acme' })
  const socket: Socket = connect(serving.port, '127.0.0.1')
  const isOver = new Promise<string>((resolve) => socket.on('close', () => resolve('cut')))
  socket.on('error', () => undefined)
  await new Promise<void>((resolve) =>
    socket.write(
      `POST /threads/${id}/messages HTTP/1.1\r\nhost: localhost\r\ncontent-length: 16\r\n`,
      () => resolve(),
    ),
  )
  await serving.close({ graceMs: 20 })
  expect(await isOver).toBe('cut')
})

test('a client that stops reading is cut off and holds no memory; it comes back and misses nothing', async () => {
  const timers = manualTimers()
  const { kit, serving } = await start({
    timers,
    limits: { streamBufferBytes: 64 * 1024, maxBodyBytes: 8 * 1024 * 1024 },
  })
  const { id } = await kit.runtime.threads.create({ agent: 'desk', tenant: 'acme' })
  // More than all buffers on the way hold.
  for (let i = 0; i < 40; i++)
    await kit.runtime.threads.values.set(id, `v${i}`, 'x'.repeat(250_000))
  const socket: Socket = connect(serving.port, '127.0.0.1')
  const isOver = new Promise<string>((resolve) => socket.on('close', () => resolve('cut')))
  socket.on('error', () => undefined)
  socket.write(
    `GET /threads/${id}/stream HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${KEYS.acme.key}\r\n\r\n`,
  )
  const text: string[] = []
  socket.once('data', (data) => {
    text.push(data.toString())
    socket.pause()
  })
  const clients = async (): Promise<number> => {
    const metrics = await fetch(`${serving.url}/metrics`, {
      headers: { authorization: `Bearer ${KEYS.acme.key}` },
    })
    return Number(/skein_stream_clients (\d+)/.exec(await metrics.text())?.[1])
  }
  while ((await clients()) === 0);
  // It is asked each time whether it has read anything; the time it takes to fill the buffers is not ours.
  while ((await clients()) === 1) await timers.advance(15_000)
  socket.resume()
  await isOver
  const client = createClient({ url: serving.url, apiKey: KEYS.acme.key })
  const { seq } = await kit.runtime.threads.get(id)
  let last = 0
  for await (const event of client.stream(id)) {
    last = Number(event.id)
    if (last === seq) break
  }
  expect(last).toBe(seq)
})

test('clients that never read hold a bounded queue each, also behind one large event, and are cut off', async () => {
  // Node publishes every socket that a server accepts, so that the test can measure their queues.
  const accepted = new Set<Socket>()
  const onSocket = (message: unknown): void =>
    void accepted.add((message as { socket: Socket }).socket)
  subscribe('net.server.socket', onSocket)
  cleanups.push(async () => void unsubscribe('net.server.socket', onSocket))
  const timers = manualTimers()
  const streamBufferBytes = 256 * 1024
  const { kit, serving } = await start({ timers })
  const { id } = await kit.runtime.threads.create({ agent: 'desk', tenant: 'acme' })
  const sockets = Array.from({ length: 8 }, () => connect(serving.port, '127.0.0.1'))
  cleanups.push(async () => sockets.forEach((socket) => void socket.destroy()))
  for (const socket of sockets) {
    socket.on('error', () => undefined).pause()
    socket.write(
      `GET /threads/${id}/stream HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${KEYS.acme.key}\r\n\r\n`,
    )
  }
  const clients = async (): Promise<number> => {
    const metrics = await fetch(`${serving.url}/metrics`, {
      headers: { authorization: `Bearer ${KEYS.acme.key}`, connection: 'close' },
    })
    return Number(/skein_stream_clients (\d+)/.exec(await metrics.text())?.[1])
  }
  while ((await clients()) < sockets.length);
  // Events that are larger than the buffers of the operating system, and nothing after them.
  await kit.runtime.threads.run(id, '🧶'.repeat(500_000))
  let largest = 0
  for (let beat = 0; beat < 4; beat++) {
    for (let i = 0; i < 50; i++) await new Promise((resolve) => setTimeout(resolve, 2))
    for (const { writableLength } of accepted) largest = Math.max(largest, writableLength)
    await timers.advance(15_000)
  }
  expect(await clients()).toBe(0)
  expect(largest).toBeGreaterThan(0)
  expect(largest).toBeLessThan(streamBufferBytes)
}, 60_000)

test('a large event arrives whole at a client that reads', async () => {
  const { kit, serving } = await start()
  const { id } = await kit.runtime.threads.create({ agent: 'desk', tenant: 'acme' })
  const value = `a${'🧶'.repeat(50_000)}`
  await kit.runtime.threads.values.set(id, 'large', value)
  const client = createClient({ url: serving.url, apiKey: KEYS.acme.key })
  for (const events of [client.stream(id), client.streamTree(id)])
    for await (const { event } of events) {
      if (event.type !== 'value_set') continue
      expect(event.value).toBe(value)
      break
    }
})
