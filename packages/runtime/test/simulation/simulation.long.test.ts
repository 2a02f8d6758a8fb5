import { expect, test } from 'vitest'
import { grantPoints, joinedPoints, kernelPoints } from './commit-points.ts'
import { Coverage } from './coverage.ts'
import { inWorkers } from './in-workers.ts'
import { plants } from './plants.ts'
import { MOMENTS, STRIKES } from './strikes.ts'

const isDeep = process.env['SKEIN_DEEP'] !== undefined
const SEEDS = isDeep ? 20_000 : 2_000
const WORKERS = 2
const timeout = isDeep ? 4 * 3_600_000 : 400_000

test(`${SEEDS} seeds: every promise holds, whatever dies when`, { timeout }, async () => {
  const count = SEEDS / WORKERS
  const tasks = Array.from({ length: WORKERS }, (_, share) => ({ from: 1 + share * count, count }))
  const answers = await inWorkers(tasks)
  const coverage = new Coverage()
  for (const answer of answers) coverage.add(answer.coverage!)
  process.stdout.write(`${coverage.table()}\n`)
  const crashed = [...coverage.points].filter(([, { before, after }]) => before + after > 0)
  const names = new Set(crashed.map(([point]) => point))
  const all = [...kernelPoints(), ...joinedPoints, ...grantPoints]
  expect(all.filter((point) => !names.has(point))).toEqual([])
  const strikes = STRIKES.flatMap((kind) => [...MOMENTS.keys()].map((at) => `${kind} @ ${at}`))
  expect(strikes.filter((strike) => !coverage.strikes.has(strike))).toEqual([])
})

test('every planted bug is found', { timeout }, async () => {
  const names = Object.keys(plants)
  const within = 1_000
  const shares = [
    names.filter((_, place) => place % 2 === 0),
    names.filter((_, place) => place % 2 === 1),
  ]
  const answers = await inWorkers(shares.map((share) => ({ plants: share, within })))
  for (const { found = {} } of answers)
    for (const [name, one] of Object.entries(found)) {
      expect(one, `${name} within ${within} seeds`).toBeDefined()
      process.stdout.write(
        `${name}: found after ${one?.seeds} seeds: ${one?.violation.slice(0, 100)}\n`,
      )
    }
})
