import { isDeepStrictEqual } from 'node:util'
import { foldKernel, KernelFold } from '../../../src/state/fold.ts'
import { restoreSnapshot, takeSnapshot } from '../../../src/state/snapshot.ts'
import { viewOf } from '../../../src/model/view.ts'
import { chanceOf } from '../chance.ts'
import type { KernelState } from '../../../src/state/kernel-state.ts'
import type { Finished } from './finished.ts'

const folds = new Set<KernelFold>()
const push = KernelFold.prototype.push

/** Remembers every fold that drains and readers make from now on. */
export function watchFolds(): void {
  folds.clear()
  KernelFold.prototype.push = function (this: KernelFold, stored) {
    folds.add(this)
    return push.call(this, stored)
  }
}

export function unwatchFolds(): void {
  KernelFold.prototype.push = push
  folds.clear()
}

/**
 * What a drain has in its hands is the fold of the log up to there, and nothing else. A fold that is ahead of
 * the log was dropped, or died with its process, before the commit that its last events were to join.
 */
export function foldsAreOfTheLog({ world, threads }: Finished): void {
  const seen = [...folds].filter(({ ahead }) => ahead === 0)
  KernelFold.prototype.push = push
  for (const { state } of seen) {
    const log = threads.get(state.threadId)?.log.slice(0, state.seq)
    if (!log || log.length < state.seq) {
      world.violate(
        `A fold of ${state.threadId} has ${state.seq} events, the log has ${log?.length}`,
      )
      continue
    }
    const expected = foldKernel(log)
    if (isDeepStrictEqual(state, expected)) continue
    const keys = Object.keys(expected) as (keyof KernelState)[]
    const differing = keys.filter((key) => !isDeepStrictEqual(state[key], expected[key]))
    world.violate(`A fold of ${state.threadId} at ${state.seq} differs in ${differing.join(', ')}`)
  }
}

/**
 * A snapshot at any place, taken as a whole or as what changed since an earlier one, and the events after it give
 * the fold of the whole log.
 */
export function snapshotsGiveTheFold({ world, threads }: Finished): void {
  const chance = chanceOf(world.seed)
  for (const [id, { log, state }] of threads) {
    const cuts = [chance.between(0, log.length), chance.between(0, log.length)]
    const [early = 0, late = 0] = cuts.toSorted((a, b) => a - b)
    const parts = new Map<number, Uint8Array>()
    const fold = new KernelFold()
    for (const cut of [early, late]) {
      for (const stored of log.slice(fold.state.seq, cut)) fold.push(stored)
      const taken = takeSnapshot(fold, chance.between(1, 4))
      if (!taken) return world.violate(`No snapshot can be taken of ${id} at ${cut}`)
      for (const [place, bytes] of taken.parts) parts.set(place, bytes)
      fold.saved = taken.saved
      fold.changedFrom = fold.state.entries.length
    }
    const restored = restoreSnapshot(parts)
    const tail = new KernelFold()
    if (restored) tail.restore(restored)
    const place = `of ${id} at ${late}, after one at ${early},`
    if (!restored || !isDeepStrictEqual(tail.state, foldKernel(log.slice(0, late))))
      world.violate(`The snapshot ${place} is not the fold`)
    for (const stored of log) tail.push(stored)
    if (!isDeepStrictEqual(tail.state, state))
      world.violate(`The snapshot ${place} and the events after it do not give the fold`)
  }
}

/** A view that goes on from an earlier view of a growing thread is the same as one of the whole thread. */
export function viewsGrowWithTheLog({ world, threads, registry }: Finished): void {
  const chance = chanceOf(world.seed)
  for (const [id, { log, state }] of threads) {
    const agent = registry.agents.get(state.agent)
    const cuts = Array.from({ length: 8 }, () => chance.between(0, log.length))
    const growing = new KernelFold()
    for (const cut of cuts.toSorted((a, b) => a - b)) {
      for (const stored of log.slice(growing.state.seq, cut)) growing.push(stored)
      const whole = foldKernel(log.slice(0, cut))
      for (const side of [agent?.a, agent?.b]) {
        if (!side) continue
        const [now, expected] = [growing.state, whole].map((one) =>
          JSON.stringify(viewOf(one, side.side, side.prompt)),
        )
        if (now === expected) continue
        world.violate(`The view of side ${side.side} of ${id} at ${cut} has not grown with the log`)
      }
    }
  }
}
