import { expect, test } from 'vitest'
import { inWorkers } from './in-workers.ts'
import { runSeed } from './run-seed.ts'

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
  for (const seed of [3, 8, 21, 34, 55, 144]) {
    const [one, other] = [await runSeed(seed), await runSeed(seed)]
    const told = (report: typeof one) =>
      report.trace.map(({ step, lane, what }) => `${step} ${lane} ${what}`)
    expect(told(other)).toEqual(told(one))
  }
})
