import { expect, test } from 'vitest'
import { inWorkers } from './in-workers.ts'

// simulation.long.test.ts has more seeds and asks that they crash at every commit point.
const SEEDS = 200
// Bugs that show within a few seeds; the long test looks for every one.
const QUICK_PLANTS = [
  'double-delivery',
  'early-write',
  'forgotten-cut',
  'kept-question',
  'living-child',
  'parsed-again',
  'reused-call-ids',
  'split-transaction',
  'stuck-action',
  'unknown-means-no',
]

test(`${SEEDS} seeds: every promise holds, whatever dies when`, { timeout: 120_000 }, async () => {
  const [answer] = await inWorkers([{ from: 1, count: SEEDS }])
  expect(answer?.coverage).toBeDefined()
})

test('a planted bug is found', { timeout: 120_000 }, async () => {
  const [answer] = await inWorkers([{ plants: QUICK_PLANTS, within: 50 }])
  expect(Object.keys(answer?.found ?? {})).toEqual(QUICK_PLANTS)
  for (const name of QUICK_PLANTS) expect(answer?.found?.[name], name).toBeDefined()
})

test('a seed is one run: the same every time', { timeout: 60_000 }, async () => {
  const seeds = [3, 8, 21, 34, 55, 144]
  // In a thread of their own, where measured time is virtual too.
  const [one, other] = await inWorkers([{ seeds }, { seeds }])
  expect(one?.traces).toHaveLength(seeds.length)
  expect(other?.traces).toEqual(one?.traces)
})
