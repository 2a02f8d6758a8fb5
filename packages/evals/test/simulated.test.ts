import { playBack } from '@skein/evals'
import { expect, test } from 'vitest'
import { countOf } from '../../../conformance/support/counts.ts'
import { simulatedRun } from './simulated-threads.ts'

/**
 * Runs whose threads do not play back yet, each with what the player cannot place. Any other run has to play back. Some of
 * these do on a quiet machine and do not on a busy one: their recordings depend on the time that the process takes.
 */
const LEFT: ReadonlyMap<number, string> = new Map([
  [2, 'the time limit of a call whose process has died'],
  [4, 'two calls of a message that is cut'],
  [6, 'a stop while a child is started'],
  [12, 'a summary after a crash'],
  [17, 'a stop while a child is started'],
  [18, 'a stop that reaches a child first'],
  [20, 'a message of a child while its parent asks a model'],
  [24, 'a summary after a crash'],
  [26, 'a child that ends while its parent is taken over'],
  [37, 'parallel calls of the runtime itself'],
])

const seeds = countOf({ fast: 10, all: 40, deep: 40 })

test(
  'threads of the crash simulation play back to the same events',
  { timeout: 600_000 },
  async () => {
    const failed: number[] = []
    let threads = 0
    for (let seed = 1; seed <= seeds; seed++) {
      const { threads: recorded, registry, world } = await simulatedRun(seed)
      const { keys, secretKey } = world
      const limits = { drainAttempts: 4, modelBackoffMs: 1_000, maxHandoffs: 1, stopGraceMs: 5_000 }
      for (const thread of recorded) {
        threads++
        const report = await playBack(thread, { registry, runtime: { keys, secretKey, limits } })
        if (!report.isSame && !failed.includes(seed)) failed.push(seed)
      }
    }
    expect(threads).toBeGreaterThan(seeds)
    expect(failed.filter((seed) => !LEFT.has(seed))).toEqual([])
  },
)
