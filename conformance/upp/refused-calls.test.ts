/** Calls that are refused before any request: every middleware is told, in every modality. */
import {
  createProvider,
  embedding,
  Image,
  image,
  llm,
  type History,
  type ImageCapabilities,
  type Middleware,
  type MiddlewareContext,
} from '@skein/ai'
import { says, scripted } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { png } from './support/stub.ts'

/** Resolves when all promises that were ready have gone on; hooks of a stream are not awaited by its caller. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const sent: string[] = []
const note = (name: string) => (): never => {
  sent.push(name)
  throw new Error('sent')
}
const nothing: ImageCapabilities = { generate: false, streaming: false, edit: false }

function provider(capabilities: ImageCapabilities) {
  return createProvider({
    name: 'refusing',
    embedding: {
      maxBatchSize: 10,
      imageInput: false,
      bind: ({ modelId }) => ({ modelId, provider: 'refusing', embed: note('embed') }),
    },
    image: {
      bind: ({ modelId }) => ({
        modelId,
        provider: 'refusing',
        capabilities,
        generate: note('generate'),
        edit: note('edit'),
        stream: note('stream'),
      }),
    },
  })
}

type Middlewares = readonly Middleware[]
const wrong = 7 as never
const talker = (middleware: Middlewares) => llm({ model: scripted([says('sent')]), middleware })
const embedder = (middleware: Middlewares) =>
  embedding({ model: provider(nothing)('m'), middleware })
const painter = (middleware: Middlewares, can = true) =>
  image({
    model: provider({ generate: can, streaming: can, edit: can })('m'),
    middleware,
  })

const calls: Record<string, readonly [boolean, (middleware: Middlewares) => Promise<unknown>]> = {
  'generate without inputs': [false, (m) => talker(m).generate()],
  'generate with an empty history': [false, (m) => talker(m).generate([])],
  'generate with a number': [false, (m) => talker(m).generate(wrong)],
  'generate with a wrong message in the history': [
    false,
    (m) => talker(m).generate([{ role: 'user', content: 'x' }] as unknown as History, 'x'),
  ],
  'generate with a time that is none': [
    false,
    (m) =>
      talker(m).generate({ type: 'user', content: [], timestamp: new Date(Number.NaN) } as never),
  ],
  'stream without inputs': [true, (m) => talker(m).stream().turn],
  'stream, read, with a number': [
    true,
    async (m) => {
      for await (const _ of talker(m).stream(wrong));
    },
  ],
  'embed a number': [false, (m) => embedder(m).embed(wrong)],
  'embed a number in chunks': [true, (m) => embedder(m).embed([wrong], { chunked: true }).result],
  'make an image of a number': [false, (m) => painter(m).generate(wrong)],
  'make an image of nothing': [false, (m) => painter(m).generate(undefined as never)],
  'make an image with a model that cannot': [false, (m) => painter(m, false).generate('x')],
  'stream an image of a number': [true, async (m) => painter(m).stream(wrong)],
  'stream an image with a model that cannot': [true, async (m) => painter(m, false).stream('x')],
}

describe.each(Object.entries(calls))('%s', (_, [streaming, call]) => {
  test('UPP-103 every middleware is told of the error that is thrown, after its start', async () => {
    const log: unknown[] = []
    const told: unknown[] = []
    const probe = (name: string): Middleware => ({
      name,
      onStart: async (context) => void log.push([name, 'onStart', context.streaming]),
      onCycle: () => void log.push([name, 'onCycle']),
      onResponse: () => void log.push([name, 'onResponse']),
      onEnd: () => void log.push([name, 'onEnd']),
      onError: async (error, { streaming: isStream, endTime }) => {
        told.push(error)
        log.push([name, 'onError', isStream, endTime !== undefined])
        throw new Error('masking')
      },
    })
    const error: unknown = await call([probe('a'), { name: 'without' }, probe('b')]).then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    await settled()
    expect(error).toMatchObject({ name: 'UPPError', code: 'INVALID_REQUEST' })
    expect(told).toEqual([error, error])
    expect(log).toEqual([
      ['a', 'onStart', streaming],
      ['b', 'onStart', streaming],
      ['a', 'onError', streaming, true],
      ['b', 'onError', streaming, true],
    ])
    expect(sent).toEqual([])
  })

  test('UPP-103 an onStart that fails is the error of the call', async () => {
    const told: string[] = []
    const fails: Middleware = {
      name: 'fails',
      onStart: () => Promise.reject(new Error('no start')),
      onError: ({ message }) => void told.push(message),
    }
    await expect(call([fails])).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
    await settled()
    expect(told).toEqual(['onStart of the middleware "fails" failed: no start'])
  })
})

const requests: Record<string, unknown> = {
  'without a config': { params: {}, prompt: 'x', inputs: ['x'], messages: [], tools: [] },
  'with a config that is null': { config: null },
  'that is undefined': undefined,
  'that is null': null,
}
const painted = Image.fromBase64(png, 'image/png')
const config = { apiKey: 'key-canary-1' }
const vendor = provider({ ...nothing, edit: true })('m')
const forms: Record<string, (middleware: Middlewares) => Promise<unknown>> = {
  generate: (middleware) => llm({ model: scripted([]), middleware, config }).generate('x'),
  embed: (middleware) => embedding({ model: vendor, middleware, config }).embed('x'),
  edit: (middleware) =>
    image({ model: vendor, middleware, config }).edit({ prompt: 'x', image: painted }),
}

describe.each(Object.entries(forms))('%s', (_, call) => {
  test.each(Object.entries(requests))(
    'UPP-103 UPP-158 a failure after a hook left a request %s is told as it was, without the key',
    async (__, request) => {
      const told: string[] = []
      const spoil: Middleware = {
        name: 'spoil',
        onRequest: (context: MiddlewareContext) => {
          context.request = request as never
          throw new Error('bang of key-canary-1')
        },
        onError: ({ message }) => void told.push(message),
      }
      const message = 'onRequest of the middleware "spoil" failed: bang of [redacted]'
      await expect(call([spoil])).rejects.toMatchObject({ code: 'INVALID_REQUEST', message })
      expect(told).toEqual([message])
    },
  )
})
