import { manualClock } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { embedding } from '../embedding.ts'
import { image } from '../image.ts'
import { llm } from '../llm.ts'
import { Image } from '../media/image.ts'
import { AssistantMessage, ToolResultMessage, UserMessage } from '../contract/message.ts'
import { createProvider } from '../contract/provider.ts'
import { calls, fails, says, scripted, stops } from '../testing/index.ts'
import { fallback } from './fallback.ts'
import { rateLimit } from './rate-limit.ts'
import { RateLimiter, type RateLimiterOptions } from './rate-limiter.ts'

/** A limiter whose sleeps end when the test moves its clock. */
function manualLimiter(options: RateLimiterOptions) {
  const clock = manualClock()
  const sleepers: { readonly at: number; readonly wake: () => void }[] = []
  const limiter = new RateLimiter({
    intervalMs: 1000,
    ...options,
    clock,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        sleepers.push({ at: clock.now() + ms, wake: resolve })
        signal.addEventListener('abort', () => reject(signal.reason as Error))
      }),
  })
  const advance = async (ms: number): Promise<void> => {
    clock.advance(ms)
    for (const { at, wake } of sleepers) if (at <= clock.now()) wake()
    await settle()
  }
  return { limiter, advance, clock }
}

const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 2))
const used = (totalTokens: number) => stops('end_turn', { usage: { totalTokens } })

test('no span of the interval sees more requests than the limit', async () => {
  const { limiter, advance, clock } = manualLimiter({ requests: 2 })
  const times: number[] = []
  const model = scripted(() => (times.push(clock.now()), says('x')))
  const instance = llm({ model: rateLimit(model, { limiter }) })
  const turns = Array.from({ length: 5 }, () => instance.generate('Hi'))
  await settle()
  for (let ms = 0; ms < 2500; ms += 100) await advance(100)
  await Promise.all(turns)
  expect(times).toEqual([0, 0, 1000, 1000, 2000])
})

test('each inference of a tool loop counts', async () => {
  const { limiter, advance } = manualLimiter({ requests: 1 })
  const model = scripted([calls('now', {}), says('Noon.')])
  const now = { name: 'now', description: '', parameters: { type: 'object' }, run: () => 'noon' }
  const turn = llm({ model: rateLimit(model, { limiter }), tools: [now] }).stream('Time?').turn
  await settle()
  expect(model.requests).toHaveLength(1)
  await advance(1000)
  expect((await turn).response.text).toBe('Noon.')
})

describe('tokens', () => {
  test.each([{ streaming: true }, { streaming: false }])(
    'what an answer used counts, not what was reserved (streaming: $streaming)',
    async ({ streaming }) => {
      const { limiter, advance } = manualLimiter({ tokens: 100 })
      const model = scripted([
        [says('x'), used(90)],
        [says('y'), used(5)],
        [says('z'), used(1)],
      ])
      const limited = rateLimit(model, { limiter, estimate: () => 20 })
      const ask = () =>
        streaming
          ? llm({ model: limited }).stream('Hi').turn
          : llm({ model: limited }).generate('Hi')
      await ask()
      const second = ask()
      await settle()
      expect(model.requests).toHaveLength(1) // 90 used and 20 to come are over the limit
      await advance(1000)
      await second
      await ask() // 5 used, 20 to come
      expect(model.requests).toHaveLength(3)
    },
  )

  test('what runs is reserved until it is settled, however long that takes', async () => {
    const { limiter, advance } = manualLimiter({ tokens: 100 })
    let finish = (): void => {}
    const slow = new Promise<void>((resolve) => (finish = resolve))
    const model = scripted(async (_, index) => {
      if (index === 0) await slow
      return [says('x'), used(10)]
    })
    const instance = llm({ model: rateLimit(model, { limiter, estimate: () => 60 }) })
    const turns = [instance.generate('a'), instance.generate('b')]
    await advance(5000)
    expect(model.requests).toHaveLength(1)
    finish()
    await Promise.all(turns)
    expect(model.requests).toHaveLength(2)
  })

  test('a failed request gives back what it had reserved', async () => {
    const { limiter } = manualLimiter({ tokens: 100 })
    const model = scripted([fails(), says('x')])
    const instance = llm({ model: rateLimit(model, { limiter, estimate: () => 100 }) })
    await expect(instance.generate('Hi')).rejects.toThrow()
    expect((await instance.generate('Hi')).response.text).toBe('x')
  })

  test('a request above the limit goes when nothing else counts', async () => {
    const { limiter } = manualLimiter({ tokens: 100 })
    const model = rateLimit(scripted([says('x')]), { limiter, estimate: () => 1e6 })
    expect((await llm({ model }).generate('Hi')).response.text).toBe('x')
  })
})

test('keys do not wait for each other', async () => {
  const { limiter } = manualLimiter({ requests: 1 })
  const model = scripted(() => says('x'))
  const limited = rateLimit(model, { limiter, key: ({ params }) => String(params['tenant']) })
  await llm({ model: limited, params: { tenant: 'a' } }).generate('Hi')
  await llm({ model: limited, params: { tenant: 'b' } }).generate('Hi')
  expect(model.requests).toHaveLength(2)
})

test('who waits can leave, and the next is not held up', async () => {
  const { limiter, advance } = manualLimiter({ requests: 1 })
  const model = scripted(() => says('x'))
  const instance = llm({ model: rateLimit(model, { limiter }) })
  await instance.generate('first')
  const leaving = instance.stream('second')
  const gone = leaving.turn
  const third = instance.generate('third')
  await settle()
  leaving.abort()
  await expect(gone).rejects.toMatchObject({ code: 'CANCELLED' })
  await advance(1000)
  await third
  expect(model.requests).toHaveLength(2)
})

test('a full queue is RATE_LIMITED with a delay, and a fallback goes on', async () => {
  const { limiter, advance } = manualLimiter({ requests: 1, maxQueue: 1 })
  const limited = rateLimit(
    scripted(() => says('one')),
    { limiter },
  )
  const instance = llm({ model: limited })
  await instance.generate('first')
  await advance(400)
  const waiting = instance.generate('second')
  await settle()
  await expect(instance.generate('third')).rejects.toMatchObject({
    code: 'RATE_LIMITED',
    retryAfterMs: 600,
    message: '1 requests wait for the rate limit already.',
  })
  const turn = await llm({ model: fallback([limited, scripted([says('two')])]) }).generate('Hi')
  expect(turn.response.text).toBe('two')
  await advance(600)
  await waiting
})

test('embeddings wait batch by batch, with their own usage', async () => {
  const { limiter, advance } = manualLimiter({ tokens: 10 })
  let batches = 0
  const provider = createProvider({
    name: 'vectors',
    embedding: {
      maxBatchSize: 1,
      imageInput: false,
      bind: ({ modelId }) => ({
        modelId,
        provider: 'vectors',
        async embed() {
          batches += 1
          return {
            embeddings: [{ vector: [1], dimensions: 1, index: 0 }],
            usage: { totalTokens: 9 },
          }
        },
      }),
    },
  })
  const model = rateLimit(provider('m'), { limiter })
  const result = embedding({ model }).embed(['four letters', 'and eight'], { concurrency: 1 })
  await settle()
  expect(batches).toBe(1)
  await advance(1000)
  expect((await result).usage.totalTokens).toBe(18)
})

test('the model stays what it was', () => {
  const { limiter } = manualLimiter({ requests: 1 })
  const model = scripted([], { provider: 'p', modelId: 'm', capabilities: { tools: false } })
  const limited = rateLimit(model, { limiter })
  expect([limited.provider.name, limited.modelId]).toEqual(['p', 'm'])
  expect(llm({ model: limited }).capabilities.tools).toBe(false)
  expect(limited.provider.handlers.image).toBeUndefined()
})

test('a limit that lets nothing through is refused', () => {
  expect(() => new RateLimiter({ requests: 0 })).toThrow('The rate limit `requests` is 0.')
})

describe('what a limiter is told', () => {
  function listening() {
    const asked: { key: string; tokens: number; origin: unknown }[] = []
    const settled: number[] = []
    const limiter = {
      admit: async ({ key, tokens, origin }: { key: string; tokens: number; origin: unknown }) => {
        asked.push({ key, tokens, origin })
        return { reserved: 77, settle: (used: number) => void settled.push(used) }
      },
    } as unknown as RateLimiter
    return { limiter, asked, settled }
  }
  const history = [
    new UserMessage([
      { type: 'text', text: 'a'.repeat(40) },
      { type: 'document', source: { type: 'text', data: 'd'.repeat(80) }, mimeType: 'text/plain' },
      { type: 'document', source: { type: 'base64', data: 'AAAA' }, mimeType: 'application/pdf' },
      Image.fromBytes(new Uint8Array(400), 'image/png').toBlock(),
    ]),
    new AssistantMessage(
      [
        { type: 'reasoning', text: 'r'.repeat(20) },
        { type: 'text', text: 't'.repeat(12) },
      ],
      [{ toolCallId: 'c', toolName: 'four', arguments: { a: 1 } }], // 4 + 7 characters
    ),
    new ToolResultMessage([{ toolCallId: 'c', toolName: 'four', result: 'x'.repeat(33) }]),
  ]

  test('an inference: a token for four characters of everything that is sent as text', async () => {
    const { limiter, asked, settled } = listening()
    const model = scripted([[says('hi'), used(5)]])
    const options = { limiter, key: () => 'tenant' }
    await llm({ model: rateLimit(model, options), system: 's'.repeat(8) }).generate(history, 'now')
    const characters = 40 + 80 + 20 + 12 + 11 + 33 + 8 + 3
    expect(asked).toEqual([
      {
        key: 'tenant',
        tokens: Math.ceil(characters / 4),
        origin: { provider: 'scripted', modality: 'llm' },
      },
    ])
    expect(settled).toEqual([5])
  })

  test('a stream: what it used, or what was reserved if it was left or cut off, or nothing if it failed at once', async () => {
    const { limiter, settled } = listening()
    const model = scripted([
      [says('hello there'), used(5)],
      [says('hello there'), used(5)],
      [says('half'), fails('cut')],
      () => Promise.reject(new Error('refused')),
    ])
    const instance = llm({ model: rateLimit(model, { limiter }) })
    await instance.stream('x').turn
    const left = instance.stream('x')
    for await (const { type } of left) if (type === 'text_delta') break
    await left.turn.catch(() => {})
    await instance.stream('x').turn.catch(() => {})
    await instance.stream('x').turn.catch(() => {})
    expect(settled).toEqual([5, 77, 77, 0])
  })

  test('embeddings and images, with their own modality', async () => {
    const { limiter, asked, settled } = listening()
    const picture = { image: Image.fromBytes(new Uint8Array([1]), 'image/png').toBlock() }
    const usage = { totalTokens: 9 }
    const both = createProvider({
      name: 'both',
      embedding: {
        maxBatchSize: 10,
        imageInput: true,
        bind: () => ({
          modelId: 'm',
          provider: 'both',
          embed: async ({ inputs }) => ({
            embeddings: inputs.map((_, index) => ({ vector: [1], dimensions: 1, index })),
            usage: { totalTokens: 4 },
          }),
        }),
      },
      image: {
        bind: () => ({
          modelId: 'm',
          provider: 'both',
          capabilities: { generate: true, streaming: true, edit: true },
          generate: async () => ({ images: [picture], usage }),
          edit: async () => ({ images: [picture] }),
          async *stream() {
            yield { type: 'image' as const, index: 0, image: picture }
            yield { type: 'end' as const, usage }
          },
        }),
      },
    })
    const model = rateLimit(both('m'), { limiter })
    await embedding({ model }).embed([
      'a'.repeat(8),
      { type: 'text', text: 'b'.repeat(4) },
      picture.image,
    ])
    const painter = image({ model })
    await painter.generate('p'.repeat(16))
    await painter.edit({ prompt: 'q'.repeat(20), image: Image.fromBlock(picture.image) })
    await painter.stream('r'.repeat(24)).result
    const origin = (modality: string) => ({ provider: 'both', modality })
    expect(asked).toEqual([
      { key: '', tokens: 3, origin: origin('embedding') },
      { key: '', tokens: 4, origin: origin('image') },
      { key: '', tokens: 5, origin: origin('image') },
      { key: '', tokens: 6, origin: origin('image') },
    ])
    expect(settled).toEqual([4, 9, 0, 9])
  })
})
