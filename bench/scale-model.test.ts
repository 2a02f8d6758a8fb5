import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { ScalePoint } from './scale.ts'
import { modelOf, simulate, waitOf } from './scale-model.ts'

const file = join(import.meta.dirname, 'scale.json')
const points = JSON.parse(readFileSync(file, 'utf8')) as readonly ScalePoint[]
const own = points.filter(({ setUp }) => !/^(?:LangGraph|DBOS)/.test(setUp))

describe('the model of a cluster', () => {
  for (const point of own)
    test(`${point.setUp}, ${point.nodes} nodes, ${point.threads} threads: within 15 % of what was measured`, () => {
      const { turnsPerSecond } = simulate(modelOf(point, waitOf(points, point.setUp)))
      expect(turnsPerSecond / point.turnsPerSecond).toBeGreaterThan(0.85)
      expect(turnsPerSecond / point.turnsPerSecond).toBeLessThan(1.15)
    })

  test('agrees with queueing theory: one server, random arrivals', () => {
    // M/G/1 with work of 1 ms ± 50 % at 70 %: the wait is λE[S²]/2(1-ρ) = 1.264 ms (Pollaczek–Khinchine).
    const { turnsPerSecond, nodesBusy, turnMs } = simulate({
      nodes: 1,
      machines: { one: { cpus: 1 } },
      placement: { node: 'one', database: 'one', engine: 'one', client: 'one' },
      cost: { nodeMs: 1, databaseMs: 0, engineMs: 0, clientMs: 0, waitMs: 0, roundTrips: 0 },
      load: { arrivalsPerSecond: 700 },
      seconds: 200,
    })
    expect(turnsPerSecond).toBeGreaterThan(680)
    expect(turnsPerSecond).toBeLessThan(720)
    expect(nodesBusy).toBeGreaterThan(0.67)
    expect(nodesBusy).toBeLessThan(0.73)
    expect(turnMs.p50).toBeGreaterThan(1.3)
    expect(turnMs.p50).toBeLessThan(2.3)
  })

  test('twice the nodes do twice the turns while nothing else is full', () => {
    const at = (nodes: number): number =>
      simulate({
        nodes,
        machines: { nodes: { cpus: 64 }, database: { cpus: 64 } },
        placement: { node: 'nodes', database: 'database', engine: 'database', client: 'nodes' },
        cost: { nodeMs: 4, databaseMs: 1, engineMs: 0, clientMs: 0, waitMs: 2, roundTrips: 8 },
        load: { threads: 400 },
        seconds: 5,
      }).turnsPerSecond
    expect(at(8) / at(4)).toBeGreaterThan(1.9)
    expect(at(8) / at(4)).toBeLessThan(2.1)
  })
})
