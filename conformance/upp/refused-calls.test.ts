/** Calls that are refused before anything is sent: the middleware is notified of them as of every failure. */
import {
  createProvider,
  image,
  llm,
  type UPPError,
  type ImageInstance,
  type Middleware,
  type MiddlewareContext,
} from '@skein/ai'
import { memoryTurns, persistenceMiddleware } from '@skein/ai/middleware'
import { fails, says, scripted } from '@skein/ai/testing'
import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { dot, forms } from './support/every-call.ts'

interface Told {
  readonly middleware: Middleware
  readonly log: string[]
}

/** A middleware that notes when it is notified of the start, the request and the failure of a call. */
function told(): Told {
  const log: string[] = []
  const note = (hook: string) => (): void => void log.push(hook)
  const onError = (error: Error): void => void log.push(`onError ${(error as UPPError).code}`)
  const middleware = {
    name: 'told',
    onStart: note('onStart'),
    onRequest: note('onRequest'),
    onError,
  }
  return { middleware, log }
}

describe('inputs of a model that are no messages', () => {
  test.each([[undefined], [null], [7], [{}], [{ role: 'user', content: 'x' }], []])(
    'UPP-103 %j goes to onError, after onStart',
    async (...given) => {
      const { middleware, log } = told()
      const model = scripted([says('no')])
      const instance = llm({ model, middleware: [middleware] })
      const refused = { code: 'INVALID_REQUEST', provider: 'scripted', modality: 'llm' }
      await expect(instance.generate(...(given as []))).rejects.toMatchObject(refused)
      await expect(instance.stream(...(given as [])).turn).rejects.toMatchObject(refused)
      expect(log).toEqual(Array(2).fill(['onStart', 'onError INVALID_REQUEST']).flat())
      expect(model.requests).toEqual([])
    },
  )

  test('UPP-103 a refused call leaves no row in a store of turns', async () => {
    const store = memoryTurns()
    const middleware = [persistenceMiddleware({ store, threadId: 't' })]
    const instance = llm({ model: scripted([fails()]), middleware })
    await expect(instance.generate(7 as never)).rejects.toThrow('Expected a message')
    expect(await store.load('t')).toEqual([])
    await expect(instance.generate('x')).rejects.toThrow()
    expect(await store.load('t')).toMatchObject([
      { status: 'failed', messages: [{ type: 'user' }] },
    ])
  })
})

describe('images', () => {
  const make = async () => ({ images: [{ image: dot.toBlock() }] })
  /** An image model that does not do some of the operations. */
  function painter(middleware: Middleware, can: Partial<ImageInstance['capabilities']> = {}) {
    const asked: string[] = []
    const capabilities = { generate: true, streaming: true, edit: true, ...can }
    const operation = (name: string) => () => {
      asked.push(name)
      return make()
    }
    const provider = createProvider({
      name: 'painter',
      image: {
        bind: ({ modelId }) => ({
          modelId,
          provider: 'painter',
          capabilities,
          generate: operation('generate'),
          edit: operation('edit'),
          async *stream() {
            asked.push('stream')
            yield { type: 'end' as const }
          },
        }),
      },
    })
    return { asked, model: image({ model: provider('m'), middleware: [middleware] }) }
  }
  const edit = { prompt: 'x', image: dot }
  const cases: [
    string,
    Partial<ImageInstance['capabilities']>,
    (model: ImageInstance) => unknown,
  ][] = [
    ['generate without the capability', { generate: false }, (model) => model.generate('x')],
    ['edit without the capability', { edit: false }, (model) => model.edit(edit)],
    ['stream without the capability', { streaming: false }, (model) => model.stream('x')],
    ['generate without a prompt', {}, (model) => model.generate(7 as never)],
    ['edit without a prompt', {}, (model) => model.edit({ image: dot } as never)],
    ['edit of nothing', {}, (model) => model.edit(null as never)],
    ['edit without an image', {}, (model) => model.edit({ prompt: 'x' })],
    ['stream without a prompt', {}, (model) => model.stream(undefined as never)],
  ]

  test.each(cases)('UPP-103 %s goes to onError, after onStart', async (_, can, start) => {
    const { middleware, log } = told()
    const { model, asked } = painter(middleware, can)
    const refused = { code: 'INVALID_REQUEST', provider: 'painter', modality: 'image' }
    await expect((async () => start(model))()).rejects.toMatchObject(refused)
    await Promise.resolve() // the hooks of a stream that throws immediately run alongside the caller
    expect(log).toEqual(['onStart', 'onError INVALID_REQUEST'])
    expect(asked).toEqual([])
  })

  test.each([
    ['generate', (model: ImageInstance) => model.generate('x')],
    ['edit', (model: ImageInstance) => model.edit(edit)],
    ['stream', (model: ImageInstance) => model.stream('x').result],
  ] as const)('UPP-103 a prompt that a hook of %s took away is refused', async (_, start) => {
    const spoil = ({ request }: MiddlewareContext): void =>
      void Object.assign(request, { prompt: 7 })
    const { model, asked } = painter({ name: 'spoil', onRequest: spoil })
    await expect(start(model)).rejects.toMatchObject({ code: 'INVALID_REQUEST', modality: 'image' })
    expect(asked).toEqual([])
  })

  test('UPP-103 images that a hook took away are not edited', async () => {
    const spoil = ({ request }: MiddlewareContext): void =>
      void Object.assign(request, { images: [] })
    const { model, asked } = painter({ name: 'spoil', onRequest: spoil })
    await expect(model.edit(edit)).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
    expect(asked).toEqual([])
  })
})

test.each(forms)(
  'UPP-103 %s: a request that a hook left without its config is reported, and the error stays a UPPError',
  async (_, modality, _streaming, start) => {
    const { middleware, log } = told()
    const spoil: Middleware = {
      name: 'spoil',
      onRequest: (context) => void (context.request = {} as never),
    }
    const vendor = (): never => {
      throw new Error('no config')
    }
    await expect(start({ middleware: [spoil, middleware], vendor })).rejects.toMatchObject({
      name: 'UPPError',
      modality,
    })
    expect(log.filter((line) => line.startsWith('onError'))).toHaveLength(1)
  },
)

test.each([undefined, null, {}, { apiKey: 'second-0123456789' }])(
  'UPP-103 UPP-158 the key stays secret when a hook changes the config to %j',
  async (config) => {
    const first = 'first-0123456789'
    const seen: unknown[] = []
    const middleware: Middleware = {
      name: 'change',
      onRequest: (context) => void Object.assign(context.request, { config }),
      onCycle: () => {
        throw new Error(`Neither ${first} nor second-0123456789.`)
      },
      onError: (error) => void seen.push(error),
    }
    const model = scripted([says('no')])
    const instance = llm({ model, middleware: [middleware], config: { apiKey: first } })
    seen.push(await instance.generate('x').catch((error: unknown) => error))
    expect(seen).toHaveLength(2)
    const text = inspect(seen, { depth: 9 })
    expect(text).toContain('[redacted]')
    expect(text).not.toContain(first)
    expect(text.includes('second-')).toBe(!config?.apiKey)
  },
)
