import { seededRandom } from '@skein/base'
import {
  DynamicKey,
  embedding,
  image,
  llm,
  NoRetry,
  RoundRobinKeys,
  UPPError,
  WeightedKeys,
  type KeyStrategy,
} from '@skein/ai'
import { openai } from '@skein/ai/openai'
import { describe, expect, test } from 'vitest'
import { operations } from './support/operations.ts'
import { hello, stub } from './support/stub.ts'

const anthropic = operations.find(({ name }) => name === 'anthropic: generate')!
const sentKeys = (seen: readonly { headers: Headers }[]): (string | null)[] =>
  seen.map(({ headers }) => headers.get('x-api-key'))

describe('getKey', () => {
  test('UPP-020 may answer immediately or later', async () => {
    const { fetch, seen } = stub()
    await anthropic.run({ apiKey: { getKey: () => 'key-now' }, fetch })
    const getKey = (): Promise<string> =>
      new Promise((resolve) => setTimeout(resolve, 5, 'key-later'))
    await anthropic.run({ apiKey: { getKey }, fetch })
    expect(sentKeys(seen)).toEqual(['key-now', 'key-later'])
  })

  test.each<[string, () => string | Promise<string>]>([
    [
      'throws',
      () => {
        throw new Error('vault is sealed')
      },
    ],
    ['rejects', () => Promise.reject(new Error('vault is sealed'))],
    ['gives a blank key', () => ' '],
    ['gives a blank key later', async () => ' '],
  ])('UPP-020 that %s fails the call as a key does, and nothing is sent', async (_, getKey) => {
    const { fetch, seen } = stub()
    let asked = 0
    const counted = (): string | Promise<string> => {
      asked += 1
      return getKey()
    }
    await expect(anthropic.run({ apiKey: { getKey: counted }, fetch })).rejects.toMatchObject({
      name: 'UPPError',
      code: 'AUTHENTICATION_FAILED',
      provider: 'anthropic',
    })
    expect(asked).toBe(1)
    expect(seen).toEqual([])
  })

  test('UPP-020 that never answers is ended by an abort, and by the time limit', async () => {
    const { fetch, seen } = stub()
    const apiKey: KeyStrategy = { getKey: () => new Promise(() => {}) }
    const controller = new AbortController()
    setTimeout(() => controller.abort(), 10)
    await expect(anthropic.run({ apiKey, fetch }, controller.signal)).rejects.toMatchObject({
      code: 'CANCELLED',
    })
    await expect(anthropic.run({ apiKey, fetch, timeout: 20 })).rejects.toMatchObject({
      code: 'TIMEOUT',
    })
    expect(seen).toEqual([])
  })
})

describe('RoundRobinKeys', () => {
  test('UPP-021 cycles in order', () => {
    const keys = new RoundRobinKeys(['a1', 'b2', 'c3'])
    const taken = Array.from({ length: 7 }, () => keys.getKey())
    expect(taken).toEqual(['a1', 'b2', 'c3', 'a1', 'b2', 'c3', 'a1'])
  })

  test('UPP-021 calls at the same time still rotate', async () => {
    const { fetch, seen } = stub()
    const apiKey = new RoundRobinKeys(['a1', 'b2', 'c3'])
    await Promise.all(Array.from({ length: 7 }, () => anthropic.run({ apiKey, fetch })))
    expect(sentKeys(seen).toSorted()).toEqual(['a1', 'a1', 'a1', 'b2', 'b2', 'c3', 'c3'])
  })

  test('UPP-021 a retry takes the next key, and the strategy learns which one failed', async () => {
    const told: unknown[] = []
    const keys = new RoundRobinKeys(['key-a', 'key-b'])
    const apiKey: KeyStrategy = {
      getKey: () => keys.getKey(),
      onKeyError: (key, error) => told.push([key, error.code]),
    }
    const { fetch, seen } = stub((one, count) =>
      count === 1 ? new Response('{}', { status: 429 }) : hello(one),
    )
    await anthropic.run({ apiKey, fetch, retryStrategy: { onRetry: () => 0 } })
    expect(sentKeys(seen)).toEqual(['key-a', 'key-b'])
    expect(told).toEqual([['key-a', 'RATE_LIMITED']])
  })

  test('UPP-021 the list given is copied', () => {
    const list = ['a1', 'b2']
    const keys = new RoundRobinKeys(list)
    list.length = 0
    expect([keys.getKey(), keys.getKey(), keys.getKey()]).toEqual(['a1', 'b2', 'a1'])
  })

  test.each([[[]], [['ok', '']], [['ok', 7]], [undefined]])(
    'UPP-021 %j is refused immediately, without showing a key',
    (keys) => {
      const make = (): unknown => new RoundRobinKeys(keys as string[])
      expect(make).toThrow(UPPError)
      expect(make).toThrow(expect.objectContaining({ code: 'INVALID_REQUEST' }))
    },
  )
})

describe('WeightedKeys', () => {
  test('UPP-022 chooses by weight: chi-square over 10,000 choices', () => {
    const weights = { a: 1, b: 2, c: 7 }
    const entries = Object.entries(weights).map(([key, weight]) => ({ key, weight }))
    const keys = new WeightedKeys(entries, { random: seededRandom(42) })
    const counts: Record<string, number> = { a: 0, b: 0, c: 0 }
    for (let i = 0; i < 10_000; i++) counts[keys.getKey()]! += 1
    const square = Object.entries(weights).reduce((sum, [key, weight]) => {
      const expected = weight * 1000
      return sum + (counts[key]! - expected) ** 2 / expected
    }, 0)
    expect(square).toBeLessThan(13.8) // 99.9 % of fair draws, two degrees of freedom
  })

  test.each([
    [{ a: 1, b: 1, c: 2 }, 'a a b b c c'],
    [{ a: 2, b: 2 }, 'a a a a b b'],
    [{ a: 0, b: 4 }, 'b b b b b b'],
  ])('UPP-022 each number belongs to one key: %j', (weights, expected) => {
    const entries = Object.entries(weights).map(([key, weight]) => ({ key, weight }))
    const numbers = [0, 0.2499, 0.25, 0.4999, 0.5, 1 - Number.EPSILON]
    const chosen = numbers.map((number) =>
      new WeightedKeys(entries, { random: () => number }).getKey(),
    )
    expect(chosen.join(' ')).toBe(expected)
  })

  test('UPP-022 a weight of zero is never chosen, at either end of the range', () => {
    const entries = ['none', 'some', 'zero'].map((key) => ({ key, weight: key === 'some' ? 1 : 0 }))
    for (const number of [0, 0.5, 1 - Number.EPSILON]) {
      expect(new WeightedKeys(entries, { random: () => number }).getKey()).toBe('some')
    }
  })

  test.each([
    [[]],
    [[{ key: 'a1', weight: 0 }]],
    [[{ key: 'a1', weight: -1 }]],
    [
      [
        { key: 'a1', weight: -1 },
        { key: 'b2', weight: 2 },
      ],
    ],
    [[{ key: 'a1', weight: Number.NaN }]],
    [
      [
        { key: 'a1', weight: Number.NaN },
        { key: 'b2', weight: 2 },
      ],
    ],
    [[{ key: 'a1', weight: '3' }]],
    [[{ key: '', weight: 1 }]],
  ])('UPP-022 %j is refused immediately', (entries) => {
    const make = (): unknown => new WeightedKeys(entries as { key: string; weight: number }[])
    expect(make).toThrow(expect.objectContaining({ code: 'INVALID_REQUEST' }))
  })

  test('UPP-022 the refusal names value and type of a weight', () => {
    const make = (): unknown => new WeightedKeys([{ key: 'a1', weight: '3' as unknown as number }])
    expect(make).toThrow(/weight 3 \(string\) at 0/)
  })
})

describe('DynamicKey', () => {
  test('UPP-023 asks its function for each attempt', async () => {
    let asked = 0
    const apiKey = new DynamicKey(async () => `token-${++asked}`)
    const { fetch, seen } = stub((one, count) =>
      count === 1 ? new Response('{}', { status: 500 }) : hello(one),
    )
    await anthropic.run({ apiKey, fetch, retryStrategy: { onRetry: () => 0 } })
    expect(sentKeys(seen)).toEqual(['token-1', 'token-2'])
  })

  test('UPP-023 a function that throws is an error with its cause; one that gives no text is too', async () => {
    const { fetch } = stub()
    const config = { fetch, retryStrategy: new NoRetry() }
    const broken = new DynamicKey(() => Promise.reject(new Error('no vault')))
    await expect(anthropic.run({ ...config, apiKey: broken })).rejects.toMatchObject({
      code: 'AUTHENTICATION_FAILED',
      cause: { message: 'no vault' },
    })
    const wrong = new DynamicKey(() => 7 as unknown as string)
    await expect(anthropic.run({ ...config, apiKey: wrong })).rejects.toMatchObject({
      code: 'AUTHENTICATION_FAILED',
    })
    expect(() => new DynamicKey('x' as never)).toThrow(UPPError)
  })
})

test('UPP-158 a key does not show when an instance, a strategy or a request is printed', async () => {
  const { inspect } = await import('node:util')
  const secret = 'sk-canary-0123456789'
  const strategies = [
    new RoundRobinKeys([secret]),
    new WeightedKeys([{ key: secret, weight: 1 }]),
    new DynamicKey(() => secret),
  ]
  for (const apiKey of [secret, ...strategies]) {
    const config = { apiKey }
    for (const model of [
      llm({ model: anthropic.provider('m'), config }),
      embedding({ model: openai('m'), config }),
      image({ model: openai('m'), config }),
    ])
      for (const shown of [inspect(model, { depth: 9, showHidden: true }), JSON.stringify(model)])
        expect(shown).not.toContain(secret)
  }
  expect(inspect(strategies, { depth: 9, showHidden: true })).not.toContain(secret)
})
