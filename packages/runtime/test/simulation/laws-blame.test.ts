import { expect, test } from 'vitest'
import { countOf } from '../../../../conformance/support/counts.ts'
import { blamePlants, runBlameSeed, type BlameKind } from './laws-blame.ts'

const seeds: Readonly<Record<BlameKind, number>> = {
  lease: countOf({ fast: 30, all: 500, deep: 6_000 }),
  blame: countOf({ fast: 20, all: 200, deep: 3_000 }),
  fair: countOf({ fast: 15, all: 100, deep: 1_000 }),
}

const timeout = 60_000 + 600 * seeds.lease

test.each(Object.entries(seeds) as [BlameKind, number][])(
  'two processes on one store, %s: the laws hold in %i seeds',
  { timeout },
  async (kind, count) => {
    let deaths = 0
    let charges = 0
    const from = Date.now()
    for (let seed = 1; seed <= count; seed++) {
      const report = await runBlameSeed(seed, kind)
      expect(report.violations, `seed ${seed}`).toEqual([])
      deaths += report.deaths
      charges += report.charges
    }
    process.stdout.write(
      `${kind}: ${count} seeds, ${deaths} deaths, ${charges} charges, ${Date.now() - from} ms\n`,
    )
  },
)

test.each(Object.entries(blamePlants))(
  'planted bug: %s is found',
  { timeout },
  async (name, plant) => {
    let seed = 0
    let found: string | undefined
    while (found === undefined && seed < 200)
      found = (await runBlameSeed(++seed, plant.kind, { plant })).violations[0]
    process.stdout.write(`${name}: found after ${seed} seeds: ${found?.slice(0, 100)}\n`)
    expect(found).toMatch(plant.finds)
  },
)

test('a seed is one run: the same every time', { timeout }, async () => {
  for (const kind of ['lease', 'blame', 'fair'] as const)
    for (const seed of [1, 5, 9])
      expect(await runBlameSeed(seed, kind)).toEqual(await runBlameSeed(seed, kind))
})
