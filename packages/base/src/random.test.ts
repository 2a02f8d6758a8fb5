import { expect, test } from 'vitest'
import { seededRandom } from '@skein/base'

const take = (count: number, random: () => number) => Array.from({ length: count }, random)

test('the same seed gives the same numbers, on every machine and for ever', () => {
  expect(take(1000, seededRandom(42))).toEqual(take(1000, seededRandom(42)))
  expect(take(3, seededRandom(42)).map((number) => number * 2 ** 32)).toEqual([
    1264412219, 1947509147, 3919439299,
  ])
})

test('other seeds give other numbers, also large and negative ones', () => {
  const seeds = [0, 1, 2, -1, 2 ** 32, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER]
  expect(new Set(seeds.map((seed) => take(4, seededRandom(seed)).join())).size).toBe(seeds.length)
})

test('numbers are spread evenly over 0 to 1', () => {
  for (const seed of [0, 1, 2, 12345]) {
    const numbers = take(16_000, seededRandom(seed))
    expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true)
    const buckets = Array.from({ length: 16 }, (_, i) =>
      numbers.filter((n) => Math.floor(n * 16) === i),
    )
    for (const bucket of buckets) expect(Math.abs(bucket.length - 1000)).toBeLessThan(160)
  }
})

test('the first numbers of neighbouring seeds are spread too', () => {
  const firsts = Array.from({ length: 4000 }, (_, seed) => seededRandom(seed)())
  const low = firsts.filter((number) => number < 0.5).length
  expect(Math.abs(low - 2000)).toBeLessThan(200)
})
