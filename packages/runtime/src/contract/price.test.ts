import { expect, test } from 'vitest'
import { zeroUsage } from '@skein/ai/engine'
import { scripted } from '@skein/ai/testing'
import type { ModelPrices } from '@skein/ai/middleware'
import { costOf } from './usage.ts'

const usage = { ...zeroUsage, inputTokens: 1000, outputTokens: 200, cacheReadTokens: 600 }
const model = { name: 'm', model: scripted([]), definition: undefined, inputs: {} }
const costAt = (price: ModelPrices | undefined, costUsd?: number): number | undefined =>
  costOf({ ...model, price }, { ...usage, ...(costUsd !== undefined && { costUsd }) })

test('input, cached and output tokens have their own prices, per million', () => {
  const price = { input: 3, output: 15, cacheRead: 0.3 }
  expect(costAt(price)).toBeCloseTo((400 * 3 + 600 * 0.3 + 200 * 15) / 1e6, 12)
})

test('without a price for cached tokens they cost what others do', () => {
  expect(costAt({ input: 3, output: 15 })).toBeCloseTo(0.006, 12)
})

test('a free model costs nothing; an unknown price gives no number', () => {
  expect(costAt({ input: 0, output: 0 })).toBe(0)
  expect(costAt(undefined)).toBe(undefined)
})

test('what the vendor says it charged is the cost', () => {
  expect(costAt({ input: 3, output: 15 }, 0.5)).toBe(0.5)
  expect(costAt(undefined, 0.5)).toBe(0.5)
})
