import { describe, expect, test } from 'vitest'
import { image } from '../image.ts'
import { llm } from '../llm.ts'
import { Image } from '../media/image.ts'
import { costMiddleware, findModel, type ModelCatalog } from './cost.ts'
import { createProvider } from '../contract/provider.ts'
import { fallback } from '../routing/fallback.ts'
import { calls, fails, says, scripted, stops } from '../testing/index.ts'
import type { TokenUsage } from '../contract/turn.ts'
import { cacheMiddleware, memoryCache } from './cache.ts'

const catalog: ModelCatalog = {
  'scripted/script': { prices: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 } },
}

const used = (usage: Partial<TokenUsage>) =>
  stops(undefined, {
    usage: { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, ...usage },
  })

async function costOf(usage: Partial<TokenUsage>, prices = catalog): Promise<number | undefined> {
  const model = scripted([[says('x'), used(usage)]])
  const turn = await llm({ model, middleware: [costMiddleware({ catalog: prices })] }).generate(
    'Hi',
  )
  return turn.usage.costUsd
}

test('plain tokens, cache reads and cache writes have their prices', async () => {
  expect(await costOf({ inputTokens: 1_000_000 })).toBe(3)
  expect(await costOf({ outputTokens: 1_000_000 })).toBe(15)
  // inputTokens includes both kinds of cached ones.
  const cached = { inputTokens: 1000, cacheReadTokens: 600, cacheWriteTokens: 300 }
  expect(await costOf(cached)).toBe((100 * 3 + 600 * 0.3 + 300 * 3.75) / 1e6)
})

test('cycles have their cost and the turn the exact sum, also where floats drift', async () => {
  const prices = { 'scripted/script': { prices: { input: 100_000, output: 0 } } }
  const model = scripted([
    [calls('now', {}), used({ inputTokens: 1 })],
    [says('x'), used({ inputTokens: 2 })],
  ])
  const now = { name: 'now', description: '', parameters: {}, run: () => '' }
  const middleware = [costMiddleware({ catalog: prices })]
  const turn = await llm({ model, tools: [now], middleware }).stream('Hi').turn
  expect(turn.usageByCycle.map(({ costUsd }) => costUsd)).toEqual([0.1, 0.2])
  expect(turn.usage.costUsd).toBe(0.3)
  expect(Object.isFrozen(turn.usage)).toBe(true)
})

test('what the vendor says wins', async () => {
  expect(await costOf({ inputTokens: 1_000_000, costUsd: 0.5 })).toBe(0.5)
})

test('without prices there is no cost but a warning', async () => {
  const middleware = [costMiddleware({ catalog: {} })]
  const turn = await llm({ model: scripted([says('x')]), middleware }).generate('Hi')
  expect(turn.usage.costUsd).toBeUndefined()
  expect(turn.warnings.map(({ code }) => code)).toEqual(['price_unknown'])
})

describe('finer prices', () => {
  const priced = (prices: object) => ({
    'scripted/script': { prices: { input: 1, output: 2, ...prices } },
  })

  test('long input', async () => {
    const long = { aboveInputTokens: 200, prices: { input: 2, output: 3 } }
    const prices = priced({ longContext: long })
    expect(await costOf({ inputTokens: 200, outputTokens: 100 }, prices)).toBe(0.0004)
    expect(await costOf({ inputTokens: 201, outputTokens: 100 }, prices)).toBe(0.000702)
  })

  test('time to live of cache writes', async () => {
    const usage = {
      inputTokens: 30,
      cacheWriteTokens: 30,
      cacheWriteTokensByTtl: { '5m': 10, '1h': 20 },
    }
    const prices = priced({ cacheWrite: 1.25, cacheWriteByTtl: { '1h': 2 } })
    expect(await costOf(usage, prices)).toBe((10 * 1.25 + 20 * 2) / 1e6)
  })

  test('modalities and vendor-side tools', async () => {
    const usage = {
      inputTokens: 100,
      outputTokens: 50,
      tokensByModality: { inputAudio: 40, outputImage: 50 },
      serverToolUse: { web_search_requests: 2 },
    }
    const prices = priced({
      byModality: { inputAudio: 10, outputImage: 30 },
      perUse: { web_search_requests: 0.01 },
    })
    expect(await costOf(usage, prices)).toBe((60 * 1 + 40 * 10 + 50 * 30) / 1e6 + 0.02)
  })
})

test('a model is found under a dated name, and only under its own provider', () => {
  const info = { limits: { contextTokens: 1 } }
  const known = { 'openai/gpt-5': info }
  for (const name of ['gpt-5', 'gpt-5-2025-08-07', 'gpt-5-20250807', 'gpt-5-latest'])
    expect(findModel(known, 'openai', name)).toBe(info)
  expect(findModel(known, 'openai', 'gpt-5-mini')).toBeUndefined()
  expect(findModel(known, 'other', 'gpt-5')).toBeUndefined()
  expect(findModel({}, 'x', '../constructor')).toBeUndefined()
})

test('behind a fallback, the model that answered is charged', async () => {
  const cheap = { 'two/small': { prices: { input: 1, output: 1 } } }
  const two = scripted([[says('x'), used({ inputTokens: 5 })]], {
    provider: 'two',
    modelId: 'small',
  })
  const model = fallback([scripted([fails()]), two])
  const middleware = [costMiddleware({ catalog: cheap })]
  expect((await llm({ model, middleware }).generate('Hi')).usage.costUsd).toBe(0.000005)
})

test('an answer from the cache costs nothing', async () => {
  const middleware = [costMiddleware({ catalog }), cacheMiddleware({ store: memoryCache() })]
  const instance = llm({ model: scripted([says('x')]), middleware })
  expect((await instance.generate('Hi')).usage.costUsd).toBeGreaterThan(0)
  expect((await instance.generate('Hi')).usage.costUsd).toBe(0)
})

test('images have a price by piece or by token', async () => {
  const picture = { image: Image.fromBytes(new Uint8Array([1]), 'image/png') }
  const provider = createProvider({
    name: 'draw',
    image: {
      bind: ({ modelId }) => ({
        modelId,
        provider: 'draw',
        capabilities: { generate: true, streaming: false, edit: false },
        generate: async () => ({ images: [picture, picture], usage: { outputTokens: 10 } }),
      }),
    },
  })
  const prices = { 'draw/m': { prices: { input: 0, output: 40, perImage: 0.02 } } }
  const middleware = [costMiddleware({ catalog: prices })]
  const result = await image({ model: provider('m'), middleware }).generate('a cat')
  expect(result.usage).toEqual({ outputTokens: 10, costUsd: 0.0404 })
})

test('an image without a price has no cost, and a cost that the vendor told stays', async () => {
  const made = (usage: object) =>
    createProvider({
      name: 'painter',
      image: {
        bind: () => ({
          modelId: 'm',
          provider: 'painter',
          capabilities: { generate: true, streaming: false, edit: false },
          generate: async () => ({
            images: [{ image: Image.fromBase64('iVBORw0KGgo=').toBlock() }],
            usage,
          }),
        }),
      },
    })('m')
  const cost = async (usage: object, prices: ModelCatalog) => {
    const middleware = [costMiddleware({ catalog: prices })]
    return (await image({ model: made(usage), middleware }).generate('x')).usage
  }
  const prices: ModelCatalog = { 'painter/m': { prices: { input: 1, output: 2, perImage: 0.5 } } }
  expect(await cost({ imagesGenerated: 3 }, prices)).toMatchObject({ costUsd: 1.5 })
  expect(await cost({ costUsd: 9 }, prices)).toMatchObject({ costUsd: 9 })
  expect(await cost({ imagesGenerated: 1 }, {})).not.toHaveProperty('costUsd')
  const tokens = { inputTokens: 1e6, outputTokens: 1e6, imagesGenerated: 1 }
  expect(await cost(tokens, prices)).toMatchObject({ costUsd: 3.5 })
})
