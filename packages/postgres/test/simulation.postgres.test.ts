import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { joinedPoints, kernelPoints } from '../../runtime/test/simulation/commit-points.ts'
import { Coverage } from '../../runtime/test/simulation/coverage.ts'
import { plants } from '../../runtime/test/simulation/plants.ts'
import { runSeed } from '../../runtime/test/simulation/run-seed.ts'
import { describeFailure } from '../../runtime/test/simulation/run-seeds.ts'
import { planOf } from '../../runtime/test/simulation/world.ts'
import { blamePlants, runBlameSeed } from '../../runtime/test/simulation/laws-blame.ts'
import { noPostgres } from './server.ts'
import { type SimulatedPostgres, startSimulatedPostgres } from './simulated-postgres.ts'

// A seed takes half a second here. CI plays one for every second commit point; the deep run goes on until a
// process has died at each of them, and then plays many more.
const isDeep = process.env['SKEIN_DEEP'] !== undefined
const MORE_SEEDS = isDeep ? 2_000 : 0
const BLAME_SEEDS = isDeep ? 300 : 2
const timeout = isDeep ? 2 * 3_600_000 : 120_000

describe.skipIf(noPostgres !== undefined)('the simulation on PostgreSQL', () => {
  let simulated: SimulatedPostgres
  beforeAll(async () => {
    simulated = await startSimulatedPostgres()
  }, 60_000)
  afterAll(() => simulated?.stop(), 60_000)

  async function play(seed: number, coverage: Coverage): Promise<void> {
    const report = await runSeed(seed, { coverage, open: simulated.open })
    if (report.violations.length > 0) throw new Error(describeFailure(report, ' --postgres'))
  }

  test(
    'every promise holds when processes die at their commits and connections are cut',
    { timeout },
    async () => {
      const coverage = new Coverage()
      const isCrashed = (point: string): boolean => {
        const { before = 0, after = 0 } = coverage.points.get(point) ?? {}
        return before + after > 0
      }
      const begun = performance.now()
      const points = [...kernelPoints(), ...joinedPoints]
      let seeds = 0
      for (const [index, point] of points.entries())
        for (let seed = 1; !isCrashed(point) && seed < 20_000; seed++) {
          if (planOf(seed).focus !== point) continue
          if (!isDeep && index % 2 === 0) break
          await play(seed, coverage)
          seeds++
          if (!isDeep) break
        }
      for (let seed = 1; seed <= MORE_SEEDS; seed++, seeds++) await play(seed, coverage)
      const crashed = points.filter(isCrashed)
      const seconds = Math.round((performance.now() - begun) / 1000)
      process.stdout.write(
        `${coverage.table()}\n${seeds} seeds in ${seconds} s; died at ${crashed.length} of ${points.length} commit points; ${simulated.cuts()} connections cut at COMMIT\n`,
      )
      expect(crashed.length).toBeGreaterThan(10)
      if (isDeep) expect(points.filter((point) => !isCrashed(point))).toEqual([])
      expect(simulated.cuts()).toBeGreaterThan(5)
    },
  )

  test(
    'two processes whose clocks differ: nobody loses a thread while its lease holds',
    { timeout },
    async () => {
      let deaths = 0
      for (let seed = 1; seed <= BLAME_SEEDS; seed++)
        for (const kind of ['lease', 'blame'] as const) {
          const report = await runBlameSeed(seed, kind, { open: simulated.open })
          expect(report.violations, `seed ${seed}, ${kind}`).toEqual([])
          deaths += report.deaths
        }
      expect(deaths).toBeGreaterThan(BLAME_SEEDS / 2)
      const plant = blamePlants['claim-wins']
      let found: string | undefined
      for (let seed = 1; found === undefined && seed < 50; seed++)
        found = (await runBlameSeed(seed, 'lease', { open: simulated.open, plant })).violations[0]
      expect(found).toMatch(plant!.finds)
    },
  )

  // The laws look at what is in the database, not at a copy.
  test('a planted bug is found here too', { timeout }, async () => {
    const found = async (): Promise<string | undefined> => {
      for (let seed = 1; seed < 100; seed++) {
        const { violations } = await runSeed(seed, {
          plant: plants['lost-order'],
          open: simulated.open,
        })
        // The same bug also shows to a reader of the live events, and which law finds it first is chance.
        const one = violations.find((violation) => violation.includes('taken as'))
        if (one !== undefined) return one
      }
      return undefined
    }
    expect(await found()).toContain('taken as')
  })
})
