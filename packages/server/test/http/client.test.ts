import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  ClientError,
  createClient,
  type Client,
  type ClientOptions,
} from '../../src/client/index.ts'
import { KEYS, startKit, type Kit } from './http-kit.ts'

const RUNS = process.env['SKEIN_DEEP'] ? 200 : 30
let kit: Kit
beforeAll(async () => {
  kit = await startKit()
})
afterAll(() => kit.stop())

const inProcess: typeof fetch = (url, init) => kit.http.fetch(new Request(url, init))

function clientOf(options: Partial<ClientOptions> = {}): Client {
  return createClient({
    url: 'http://localhost/',
    apiKey: KEYS.acme.key,
    fetch: inProcess,
    ...options,
  })
}

test('the client does over the network what the runtime does', async () => {
  const { threads, agents } = clientOf()
  expect((await agents.list()).map(({ name }) => name)).toContain('desk')
  expect(await agents.get('desk')).toMatchObject({ title: 'Desk', type: 'ai_human' })
  const { id } = await threads.create({
    agent: 'desk',
    title: 'One',
    clientId: 'c/1 ü',
    tags: ['t'],
  })
  expect(await threads.byClientId('c/1 ü')).toEqual(await threads.get(id))
  expect((await threads.list({ parentId: null, tag: 't' })).map((thread) => thread.id)).toEqual([
    id,
  ])
  expect(await threads.update(id, { title: 'Two' })).toMatchObject({ title: 'Two' })
  expect(await threads.run(id, { text: 'note' })).toMatchObject({ outcome: 'completed' })
  const messages = await threads.messages(id, { order: 'asc' })
  expect(messages[0]?.message).toMatchObject({ type: 'user' })
  await threads.updateMessage(id, messages[0]!.id, 'changed')
  await threads.deleteMessage(id, messages.at(-1)!.id)
  expect((await threads.messages(id)).length).toBe(messages.length - 1)

  const path = '/a folder/ü%2F"x".txt'
  const bytes = new TextEncoder().encode('Hello')
  const stat = await threads.files.write(id, path, bytes, { mediaType: 'text/plain' })
  expect(await threads.files.read(id, path)).toEqual({ stat, bytes })
  expect(await threads.files.remove(id, path)).toBe(true)
  expect(await threads.files.remove(id, path)).toBe(false)
  expect(await threads.files.stat(id, path)).toBeUndefined()

  await threads.values.set(id, 'a/b', { deep: [1] })
  expect(await threads.values.get(id, 'a/b')).toEqual({ deep: [1] })
  expect(await threads.values.list(id, 'a/')).toEqual({ 'a/b': { deep: [1] } })
  await threads.values.set(id, 'a/b', null)
  expect(await threads.values.get(id, 'a/b')).toBeUndefined()

  await threads.env.set(id, 'PIN', 'canary', { type: 'secret' })
  expect(await threads.env.list(id)).toContainEqual({ name: 'PIN', type: 'secret' })

  const effectId = await threads.effects.schedule(
    id,
    'remind',
    {},
    { delayMs: 3_600_000, key: 'k' },
  )
  await threads.effects.runNow(id, effectId)
  await kit.runtime.idle()
  expect(await threads.values.get(id, 'reminded')).toBe(true)
  expect(await threads.effects.remove(id, effectId)).toBe(false)

  const [log] = await threads.logs(id)
  expect(await threads.log(id, log!.logId)).toMatchObject({ prompt: 'desk' })
  expect(await threads.cost(id)).toMatchObject({ threadId: id })
  expect(await threads.document(id)).toMatchObject({ thread_id: id })
  const fork = await threads.fork(id, { title: 'Fork' })
  expect(fork.id).not.toBe(id)
  const lines = await threads.export(fork.id)
  await threads.remove(fork.id)
  expect(await threads.import(lines)).toMatchObject({ tenant: 'acme' })
  await threads.terminate(id)
  await expect(threads.send(id, 'x')).rejects.toMatchObject({
    code: 'THREAD_TERMINATED',
    status: 409,
    hint: expect.any(String),
  })
})

test('a message says what happens if the thread is busy, and a call is approved with changes', async () => {
  const { threads, inbox } = clientOf({ apiKey: KEYS.ada.key })
  const { id } = await threads.create({ agent: 'desk' })
  await threads.run(id, 'a refund')
  const late = threads.send(id, { text: 'note', ifBusy: 'reject' })
  await expect(late).rejects.toMatchObject({ code: 'THREAD_BUSY', status: 409 })
  const [item] = await inbox.list({ rootId: id })
  const stale = inbox.approve({ ...item!, with: { amount: 4 }, digest: 'sha256:0' })
  await expect(stale).rejects.toMatchObject({ code: 'ANSWER_INVALID', status: 400 })
  await inbox.approve({ ...item!, with: { amount: 4 }, digest: item!.request!.digest })
  expect(await threads.settled(id)).toMatchObject({ outcome: 'completed' })
  expect(JSON.stringify(await threads.messages(id))).toContain('Paid 4.')
  expect(JSON.stringify(await threads.messages(id))).not.toContain('Paid 5.')
  await threads.run(id, 'a refund')
  expect(await threads.run(id, { text: 'hello', ifBusy: 'cut' })).toMatchObject({
    outcome: 'completed',
    text: expect.stringContaining('You said: hello.'),
  })
})

test('approvals and questions are answered by whom the key belongs to', async () => {
  const { threads, inbox } = clientOf({ apiKey: KEYS.ada.key })
  const { id } = await threads.create({ agent: 'desk' })
  expect(await threads.run(id, 'a refund')).toMatchObject({ outcome: 'waiting' })
  const [item] = await inbox.list({ rootId: id })
  expect(item).toMatchObject({ kind: 'approval', toolName: 'refund', arguments: { amount: 5 } })
  await inbox.approve(item!)
  await expect(inbox.deny({ ...item!, reason: 'late' })).rejects.toMatchObject({
    code: 'ALREADY_ANSWERED',
  })
  expect(await threads.settled(id)).toMatchObject({ outcome: 'completed' })
  const answered = (await threads.events(id)).find(
    ({ event }) => event.type === 'interrupt_answered',
  )
  expect(answered?.event).toMatchObject({ answeredBy: 'ada' })
  await threads.run(id, 'now ask')
  const [question] = await inbox.list({ rootId: id })
  await inbox.answer(question!, { type: 'result', value: 'the red one' })
  expect(await threads.settled(id)).toMatchObject({ outcome: 'completed' })
})

test('a refusal is an error with code, status, hint and problems; a server that is not there, too', async () => {
  const { threads } = clientOf()
  const wrong = threads.create({ agent: 'desk', title: 7 as never })
  await expect(wrong).rejects.toBeInstanceOf(ClientError)
  await expect(wrong).rejects.toMatchObject({
    code: 'INPUT_INVALID',
    status: 400,
    problems: [{ field: 'body.title' }],
  })
  const gone = clientOf({ fetch: () => Promise.reject(new TypeError('fetch failed')) })
  await expect(gone.threads.get('x')).rejects.toMatchObject({ code: 'NOT_REACHED', status: 0 })
  const proxy = clientOf({ fetch: async () => new Response('<html>', { status: 502 }) })
  await expect(proxy.threads.get('x')).rejects.toMatchObject({ code: 'UNKNOWN', status: 502 })
})

test('whatever happens to the connection, a stream gives every event once and in order', async () => {
  const { id } = await kit.runtime.threads.create({ agent: 'desk', tenant: 'acme' })
  for (const text of ['one', 'two', 'three']) await kit.runtime.threads.run(id, text)
  const log = await kit.runtime.threads.events(id, { limit: 1000 })
  const trouble = fc.oneof(
    fc.record({ cutAfter: fc.integer({ min: 0, max: 6000 }) }),
    fc.constantFrom('down' as const, 503, 429, 'error' as const),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(trouble, { maxLength: 12 }), async (troubles) => {
      const left = [...troubles]
      const waits: number[] = []
      const client = clientOf({
        fetch: async (url, init) => {
          const next = left.shift()
          if (next === 'down') throw new TypeError('fetch failed')
          if (typeof next === 'number')
            return new Response('', { status: next, headers: { 'retry-after': '7' } })
          const response = await inProcess(url, init)
          return next === undefined
            ? response
            : cut(response, next === 'error' ? { cutAfter: 500, fails: true } : next)
        },
        streams: { wait: async (ms) => void waits.push(ms), random: () => 1 },
      })
      const got: string[] = []
      for await (const { id: number, event } of client.stream(id, { untilParked: true }))
        got.push(`${number} ${event.type}`)
      expect(got).toEqual(log.map(({ seq, event }) => `${seq} ${event.type}`))
      for (const [index, ms] of waits.entries())
        expect(ms === 7000).toBe(typeof troubles[index] === 'number')
    }),
    { numRuns: RUNS },
  )
})

/** The beginning of an answer; then it ends, or breaks. */
function cut(
  response: Response,
  { cutAfter, fails = false }: { cutAfter: number; fails?: boolean },
): Response {
  const reader = response.body!.getReader()
  let left = cutAfter
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read()
      if (done) return controller.close()
      if (value.length <= left) {
        left -= value.length
        return controller.enqueue(value)
      }
      controller.enqueue(value.slice(0, left))
      await reader.cancel()
      if (fails) controller.error(new TypeError('terminated'))
      else controller.close()
    },
  })
  return new Response(body, response)
}

test('a stream that is refused for good throws, and one that is aborted ends', async () => {
  const client = clientOf()
  const refused = (async () => {
    for await (const event of client.stream('nobody')) void event
  })()
  await expect(refused).rejects.toMatchObject({ code: 'THREAD_NOT_FOUND', status: 404 })
  const { id } = await client.threads.create({ agent: 'desk' })
  const abort = new AbortController()
  const got: string[] = []
  for await (const { event } of client.stream(id, { signal: abort.signal })) {
    got.push(event.type)
    if (got.length === 2) abort.abort()
  }
  expect(got.length).toBeLessThanOrEqual(3)
})

test('a stream that goes quiet is taken up again', async () => {
  const { id } = await kit.runtime.threads.create({ agent: 'desk', tenant: 'acme' })
  await kit.runtime.threads.run(id, 'Hello')
  let opened = 0
  const client = clientOf({
    fetch: async (url, init) =>
      ++opened === 1 ? new Response(new ReadableStream()) : inProcess(url, init),
    streams: { quietMs: 1, wait: async () => undefined },
  })
  let count = 0
  for await (const event of client.stream(id, { untilParked: true })) count += event ? 1 : 0
  expect([opened >= 2, count > 5]).toEqual([true, true])
})
