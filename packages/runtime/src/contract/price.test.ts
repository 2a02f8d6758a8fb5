import { expect, test } from 'vitest'
import { zeroUsage } from '@skein/ai'
import { priceOf } from './usage.ts'

const usage = { ...zeroUsage, inputTokens: 1000, outputTokens: 200, cacheReadTokens: 600 }

test('input, cached and output tokens have their own prices, per million', () => {
  const prices = { inputPrice: 3, outputPrice: 15, cachedPrice: 0.3 }
  expect(priceOf(prices, usage)).toBeCloseTo((400 * 3 + 600 * 0.3 + 200 * 15) / 1e6, 12)
})

test('without a price for cached tokens they cost what others do', () => {
  expect(priceOf({ inputPrice: 3, outputPrice: 15 }, usage)).toBeCloseTo(0.006, 12)
})

test('a free model costs nothing; an unknown price gives no number', () => {
  expect(priceOf({ inputPrice: 0, outputPrice: 0 }, usage)).toBe(0)
  expect(priceOf({}, usage)).toBe(undefined)
  expect(priceOf({ inputPrice: 3 }, usage)).toBe(undefined)
  expect(priceOf({ outputPrice: 3, cachedPrice: 1 }, usage)).toBe(undefined)
})
