import { systemClock } from '@skein/base'
import {
  Audio,
  Document,
  image,
  Image,
  isUPPError,
  llm,
  NoRetry,
  UserMessage,
  Video,
  type ProviderConfig,
  type UserContent,
} from '@skein/ai'
import { azureOpenaiResource } from '@skein/ai/azure-openai'
import { openai } from '@skein/ai/openai'
import { says, scripted } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { bytesOf, hello, helloBody, png, stub } from './support/stub.ts'
import { llmVendors } from './support/vendors.ts'

const apiKey = 'key-0123456789'
const failure = (promise: Promise<unknown>): Promise<unknown> => promise.catch((e: unknown) => e)

test('UPP-152 addresses that differ only in their path or protocol are distinguished', async () => {
  const bases = [
    'https://a.test/v1',
    'https://a.test/v2/x',
    'http://a.test/v1',
    'https://b.test/v1',
  ]
  const { fetch, seen } = stub()
  for (const baseUrl of [...bases, ...bases])
    await llm({ model: openai('m'), config: { apiKey, baseUrl, fetch } }).generate('x')
  expect(seen.map(({ url }) => url)).toEqual(
    [...bases, ...bases].map((base) => `${base}/responses`),
  )
})

test('UPP-163 the address of an Azure resource is https', async () => {
  const { fetch, seen } = stub()
  await llm({ model: azureOpenaiResource('my-res')('m'), config: { apiKey, fetch } }).generate('x')
  expect(seen[0]?.url).toBe('https://my-res.openai.azure.com/openai/v1/responses')
})

describe.each(llmVendors)('$name', ({ provider }) => {
  const talker = (config: ProviderConfig) =>
    llm({ model: provider('m'), config: { apiKey, retryStrategy: new NoRetry(), ...config } })

  test('UPP-153 a fetch whose body has empty chunks is read to its end', async () => {
    const fetch = async (url: string, init: RequestInit): Promise<Response> => {
      const { type, text } = helloBody(url, init.body as string)
      const bytes = bytesOf(type, text)
      const half = Math.floor(bytes.length / 2)
      const none = new Uint8Array()
      const chunks = [none, bytes.subarray(0, half), none, none, bytes.subarray(half), none]
      const body = new ReadableStream<Uint8Array>({
        start: (stream) => {
          for (const chunk of chunks) stream.enqueue(chunk)
          stream.close()
        },
      })
      return new Response(body, { headers: { 'content-type': type } })
    }
    expect((await talker({ fetch }).generate('x')).response.text).toBe('Hello')
    expect((await talker({ fetch }).stream('x').turn).response.text).toBe('Hello')
  })

  test('UPP-153 a long conversation reaches the fetch as one text of JSON, whole', async () => {
    const { fetch, seen } = stub()
    const long = ['first ', 'second '].map((word) => word.repeat(6000))
    const model = talker({ fetch })
    await model.generate('short')
    await model.stream('short').turn
    const { messages } = await model.generate(long[0]!)
    await model.stream(messages, long[1]!).turn
    await model.generate(messages, long[1]!)
    const [short, streamed, , longStreamed, longer] = seen.map(({ body }) => body)
    const fields = (body = ''): string[] => Object.keys(JSON.parse(body) as object)
    expect(fields(longer)).toEqual(fields(short))
    expect(fields(longStreamed)).toEqual(fields(streamed))
    for (const body of [longer, longStreamed])
      for (const text of [...long, 'Hello']) expect(body?.split(text)).toHaveLength(2)
  })

  test('UPP-162 a body of exactly the limit is read, of one byte more it is not', async () => {
    for (const way of ['generate', 'stream'] as const) {
      const ask = (maxResponseBytes: number): Promise<unknown> => {
        const { fetch } = stub()
        const model = talker({ fetch, maxResponseBytes })
        return failure(way === 'generate' ? model.generate('x') : model.stream('x').turn)
      }
      let size = 0
      const measure = async (url: string, init: RequestInit): Promise<Response> => {
        const response = hello({ url, body: init.body as string })
        size = (await response.clone().arrayBuffer()).byteLength
        return response
      }
      const model = talker({ fetch: measure })
      await (way === 'generate' ? model.generate('x') : model.stream('x').turn)
      expect(await ask(size)).toMatchObject({ response: { text: 'Hello' } })
      expect(await ask(size - 1)).toMatchObject({ code: 'INVALID_RESPONSE' })
    }
  })
})

test('UPP-154 the time in which a key is fetched counts', async () => {
  const config = { apiKey: () => new Promise<string>(() => {}), timeout: 10 }
  const { fetch, seen } = stub()
  for (const call of [
    llm({ model: openai('m'), config: { ...config, fetch } }).generate('x'),
    image({ model: openai('m'), config: { ...config, fetch } }).generate('x'),
  ])
    await expect(call).rejects.toMatchObject({ code: 'TIMEOUT' })
  expect(seen).toEqual([])
})

test('UPP-154 UPP-164 after the first byte idleMs counts, not firstByteMs', async () => {
  const silent = new ReadableStream({ start: (body) => body.enqueue(new Uint8Array([32])) })
  const headers = { 'content-type': 'text/event-stream' }
  const config = {
    apiKey,
    retryStrategy: new NoRetry(),
    timeouts: { idleMs: 10, firstByteMs: 600_000 },
    fetch: async () => new Response(silent, { headers }),
  }
  await expect(llm({ model: openai('m'), config }).stream('x').turn).rejects.toMatchObject({
    code: 'TIMEOUT',
    hint: expect.stringContaining('idleMs') as unknown,
  })
})

test('UPP-094 a fetch that aborts by itself is CANCELLED, and not asked again', async () => {
  let asked = 0
  const fetch = async (): Promise<Response> => {
    asked++
    throw new DOMException('enough', 'AbortError')
  }
  const talker = llm({ model: openai('m'), config: { apiKey, fetch } })
  for (const call of [talker.generate('x'), talker.stream('x').turn])
    await expect(call).rejects.toMatchObject({ code: 'CANCELLED', provider: 'openai' })
  expect(asked).toBe(2)
})

describe('capabilities', () => {
  const wav = new TextEncoder().encode('RIFF\x24\0\0\0WAVEfmt ')
  const mp4 = Uint8Array.from([0, 0, 0, 24, ...new TextEncoder().encode('ftypisom')])
  const media: Record<string, UserContent> = {
    imageInput: Image.fromBase64(png).toBlock(),
    documentInput: Document.fromText('a').toBlock(),
    audioInput: Audio.fromBytes(wav).toBlock(),
    videoInput: Video.fromBytes(mp4).toBlock(),
  }
  const tool = { name: 't', description: '', parameters: {}, run: () => 1 }
  const text = { type: 'text', text: 'a' } as const

  test.each(Object.entries(media))(
    'UPP-167 UPP-148 without %s its blocks are refused, wherever they are',
    async (name, block) => {
      const capabilities = { [name]: false }
      const others = Object.values(media).filter((other) => other !== block)
      const histories = [
        [new UserMessage([block])],
        [new UserMessage([text, ...others, block])],
        [new UserMessage([block]), new UserMessage('a')],
        [new UserMessage('a'), new UserMessage([...others, block]), new UserMessage('b')],
      ]
      for (const messages of histories)
        for (const way of ['generate', 'stream'] as const) {
          const model = scripted([says('ok')], { capabilities })
          const talker = llm({ model })
          const error = await failure(
            way === 'generate' ? talker.generate(messages) : talker.stream(messages).turn,
          )
          expect(isUPPError(error) && error.code).toBe('INVALID_REQUEST')
          expect(model.requests).toEqual([])
        }
      const fine = llm({ model: scripted([says('ok')], { capabilities }) })
      expect((await fine.generate([new UserMessage(others)], 'go')).response.text).toBe('ok')
    },
  )

  test.each([{}, { tools: [tool] }, { system: 's' }])(
    'UPP-167 a model that cannot stream is not asked to, with %j',
    async (options) => {
      const model = scripted([says('ok')], { capabilities: { streaming: false } })
      const talker = llm({ model, ...options })
      await expect(talker.stream('x').turn).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
      expect(model.requests).toEqual([])
      expect((await talker.generate('x')).response.text).toBe('ok')
    },
  )

  test('UPP-167 a model without tools is given none, be it one or two', () => {
    const model = scripted([says('ok')], { capabilities: { tools: false } })
    for (const tools of [[tool], [tool, { ...tool, name: 'u' }]])
      expect(() => llm({ model, tools })).toThrow(
        expect.objectContaining({ code: 'INVALID_REQUEST' }),
      )
  })
})

test('UPP-152 a request to another endpoint of the vendor goes to the configured address', async () => {
  const { fetch, seen } = stub(() => Response.json({ ok: true }))
  const reference = openai('m')
  const bound = reference.provider.handlers.llm!.bind(reference)
  const config = { apiKey, fetch, baseUrl: 'https://own.test/v9/' }
  const { signal } = new AbortController()
  const request = { path: '/models?limit=1', config, signal, clock: systemClock }
  expect(await bound.send!({ ...request, method: 'GET' })).toEqual({ ok: true })
  expect(await bound.send!({ ...request, body: { a: 1 } })).toEqual({ ok: true })
  expect(seen.map(({ url, method, body }) => [url, method, body])).toEqual([
    ['https://own.test/v9/models?limit=1', 'GET', ''],
    ['https://own.test/v9/models?limit=1', 'POST', '{"a":1}'],
  ])
})

test.each([null, Number.NaN, Infinity, undefined, '5'])(
  'UPP-155 a strategy that answers %s gives up',
  async (answer) => {
    const { fetch, seen } = stub(() => new Response('', { status: 503 }))
    const retryStrategy = { onRetry: () => answer as number }
    const call = llm({ model: openai('m'), config: { apiKey, fetch, retryStrategy } }).generate('x')
    await expect(call).rejects.toMatchObject({ code: 'PROVIDER_ERROR', statusCode: 503 })
    expect(seen).toHaveLength(1)
  },
)

test.each([
  'https://ann@a.test/v1',
  'https://:hunter22@a.test/v1',
  'https://ann:hunter22@a.test/v1',
])('UPP-163 UPP-158 the address %s carries credentials and is refused', async (baseUrl) => {
  const { fetch, seen } = stub()
  const call = llm({ model: openai('m'), config: { apiKey, fetch, baseUrl } }).generate('x')
  const error = await failure(call)
  expect(error).toMatchObject({ code: 'INVALID_REQUEST' })
  expect(String(error)).not.toMatch(/ann@|hunter22/)
  expect(seen).toEqual([])
})

test.each(['generate', 'stream'] as const)(
  'UPP-162 %s: a content-length that says less than the body has does not lift the limit',
  async (way) => {
    const fetch = async (url: string, init: RequestInit): Promise<Response> => {
      const { type, text } = helloBody(url, init.body as string)
      const headers = { 'content-type': type, 'content-length': '5' }
      return new Response(text, { headers })
    }
    const config = { apiKey, fetch, retryStrategy: new NoRetry(), maxResponseBytes: 50 }
    const talker = llm({ model: openai('m'), config })
    const call = way === 'generate' ? talker.generate('x') : talker.stream('x').turn
    await expect(call).rejects.toMatchObject({ code: 'INVALID_RESPONSE' })
  },
)
