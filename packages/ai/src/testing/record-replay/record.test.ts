import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Fetch } from '../../contract/provider.ts'
import { Image } from '../../media/image.ts'
import { image } from '../../image.ts'
import { llm } from '../../llm.ts'
import { anthropic } from '../../vendors/anthropic.ts'
import { openai } from '../../vendors/openai.ts'
import { calls, says, vendorServer } from '../index.ts'
import { fileStore } from './file-store-node.ts'
import { recordFetch } from './record.ts'
import { replayFetch } from './replay.ts'
import { memoryRecordings, type Recording } from './recording.ts'

const key = 'sk-canary-0123456789'
const post = (fetch: Fetch, body: string, url = 'http://vendor.test/x'): Promise<Response> =>
  fetch(url, { method: 'POST', body, headers: { authorization: `Bearer ${key}` } })

async function readsOf(response: Response): Promise<Uint8Array[]> {
  const reads: Uint8Array[] = []
  for await (const chunk of response.body!) reads.push(chunk)
  return reads
}

const streamOf = (chunks: readonly Uint8Array[]): ReadableStream<Uint8Array<ArrayBuffer>> =>
  new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(Uint8Array.from(chunk))
      controller.close()
    },
  })

test('bodies come back byte for byte and read for read, whatever they are', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.uint8Array({ minLength: 1, maxLength: 9 })), async (chunks) => {
      const store = memoryRecordings()
      const record = recordFetch(store, { fetch: async () => new Response(streamOf(chunks)) })
      expect(await readsOf(await post(record, '{}'))).toEqual(chunks)
      await record.saved()
      const kept = JSON.parse(JSON.stringify(await store.load())) as Recording
      expect(await readsOf(await post(replayFetch(kept), '{}'))).toEqual(chunks)
    }),
    { numRuns: process.env['SKEIN_DEEP'] ? 2000 : 60, seed: 8 },
  )
})

test('a conversation is recorded in a file and replayed without a server', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'skein-record-'))
  try {
    const store = fileStore(join(folder, 'deep', 'hello.json'))
    const vendor = vendorServer([calls('add', { a: 1 }), says('Grüße 🧵')], { chunkBytes: 7 })
    const ask = async (fetch: Fetch): Promise<string[]> => {
      const texts: string[] = []
      const add = {
        name: 'add',
        description: 'Adds.',
        parameters: { type: 'object' },
        run: () => 3,
      }
      const config = { fetch, apiKey: key }
      for await (const event of llm({ model: openai('gpt-5'), config, tools: [add] }).stream('Hi'))
        if (event.type === 'text_delta') texts.push(event.delta.text)
      return texts
    }
    const record = recordFetch(store, { fetch: vendor.fetch })
    const live = await ask(record)
    await record.saved()
    expect(await ask(replayFetch(store))).toEqual(live)
    expect(vendor.requests).toHaveLength(2)
    const file = await readFile(join(folder, 'deep', 'hello.json'), 'utf8')
    expect(file).not.toContain(key)
    expect(file).toContain('[redacted]')
  } finally {
    await rm(folder, { recursive: true })
  }
})

describe('secrets', () => {
  test('in headers, address, request and response, also across reads', async () => {
    const store = memoryRecordings()
    const echo = `{"error":"Wrong key ${key}"}`
    const bytes = new TextEncoder().encode(echo)
    const chunks = [bytes.slice(0, 24), bytes.slice(24)]
    const record = recordFetch(store, {
      secrets: ['tenant-secret'],
      fetch: async () =>
        new Response(streamOf(chunks), { headers: { 'set-cookie': 'a=b', 'x-echo': key } }),
    })
    const body = JSON.stringify({ note: `my key is ${key}`, tenant: 'tenant-secret' })
    const url = `http://vendor.test/x?key=url-secret-1&model=m`
    const reads = await readsOf(await post(record, body, url))
    expect(reads.map(({ length }) => length)).toEqual(chunks.map(({ length }) => length))
    await record.saved()
    const text = JSON.stringify(await store.load())
    for (const secret of [key, 'tenant-secret', 'url-secret-1', 'a=b'])
      expect(text).not.toContain(secret)
    expect(text).toContain('model=m')
    // The same call with another key finds its recording.
    const replay = replayFetch((await store.load())!, { secrets: ['other-tenant'] })
    const again = JSON.stringify({ note: 'my key is sk-another-key', tenant: 'other-tenant' })
    const response = await replay('http://vendor.test/x?key=url-secret-2&model=m', {
      method: 'POST',
      body: again,
      headers: { authorization: 'Bearer sk-another-key' },
    })
    const told = await response.text()
    expect(told).toHaveLength(echo.length)
    expect(told).toContain('Wrong key ****')
  })
})

test('requests are matched by what they say; each exchange is used once', async () => {
  let count = 0
  const store = memoryRecordings()
  const record = recordFetch(store, { fetch: async () => new Response(String(++count)) })
  for (const body of ['{"a":1,"b":2}', '{"a":1,"b":2}', '{"a":3}'])
    await (await post(record, body)).text()
  await record.saved()
  const replay = replayFetch(store)
  expect(await (await post(replay, '{"a":3}')).text()).toBe('3')
  expect(await (await post(replay, '{ "b": 2, "a": 1 }')).text()).toBe('1')
  expect(await (await post(replay, '{"a":1,"b":2}')).text()).toBe('2')
  await expect(post(replay, '{"a":3}')).rejects.toMatchObject({
    code: 'NOT_RECORDED',
    hint: 'The recording is used up.',
  })
})

test('what was not recorded is told with the nearest', async () => {
  const store = memoryRecordings()
  const record = recordFetch(store, { fetch: async () => new Response('x') })
  await (await post(record, '{"q":"old"}')).text()
  await record.saved()
  const replay = replayFetch(store)
  await expect(post(replay, '{"q":"new"}')).rejects.toMatchObject({
    message: 'POST http://vendor.test/x with {"q":"new"} was not recorded.',
    hint: 'Recorded for this address, with another body: {"q":"old"}',
  })
  await expect(post(replay, '{}', 'http://vendor.test/y')).rejects.toMatchObject({
    hint: 'Left in the recording: POST http://vendor.test/x',
  })
  await expect(post(replayFetch(memoryRecordings()), '{}')).rejects.toMatchObject({
    code: 'NO_RECORDING',
  })
})

test('a broken connection is replayed as one; a body that was left waits for its abort', async () => {
  const vendor = vendorServer([says('one two three four'), says('one two three')], {
    faults: [{ kind: 'cut', afterBytes: 400 }],
  })
  const store = memoryRecordings()
  const ask = (fetch: Fetch) => {
    const config = { fetch, apiKey: key, retryStrategy: { onRetry: () => null } }
    return llm({ model: anthropic('claude'), config })
  }
  const record = recordFetch(store, { fetch: vendor.fetch })
  await expect(ask(record).stream('Hi').turn).rejects.toMatchObject({ code: 'NETWORK_ERROR' })
  for await (const event of ask(record).stream('Ho')) if (event.type === 'text_delta') break
  await record.saved()
  expect((await store.load())?.exchanges.map(({ response }) => response.end)).toEqual([
    'failed',
    'left',
  ])
  const replay = replayFetch(store)
  await expect(ask(replay).stream('Hi').turn).rejects.toMatchObject({ code: 'NETWORK_ERROR' })
  const stream = ask(replay).stream('Ho')
  for await (const event of stream) if (event.type === 'text_delta') break
  await expect(stream.turn).rejects.toMatchObject({ code: 'CANCELLED' })
})

test('forms are kept by their parts, not by their random boundary', async () => {
  const store = memoryRecordings()
  const edit = async (fetch: Fetch): Promise<number> => {
    const painter = image({ model: openai('gpt-image-1'), config: { fetch, apiKey: key } })
    const source = Image.fromBytes(new Uint8Array([137, 80, 78, 71]), 'image/png')
    const { images } = await painter.edit({ image: source, prompt: 'Red' })
    return images.length
  }
  const record = recordFetch(store, { fetch: vendorServer([]).fetch })
  const live = await edit(record)
  await record.saved()
  expect(await edit(replayFetch(store))).toBe(live)
  expect((await store.load())?.exchanges[0]?.request.body).toMatchObject({
    form: expect.any(Array),
  })
})

test('a store that fails is told by saved, and nowhere else', async () => {
  const store = {
    load: async () => undefined,
    save: async () => {
      throw new Error('disk full')
    },
  }
  const record = recordFetch(store, { fetch: async () => new Response('x') })
  expect(await (await post(record, '{}')).text()).toBe('x')
  await expect(record.saved()).rejects.toThrow('disk full')
})
