import { isDeepStrictEqual } from 'node:util'
import { foldKernel, KernelFold } from '../../../src/fold/fold.ts'
import type { KernelState } from '../../../src/contract/state.ts'
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
