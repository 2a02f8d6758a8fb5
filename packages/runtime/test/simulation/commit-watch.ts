import { isStoreError, type Commit } from '@skein/runtime'
import { knownPoints } from './commit-points.ts'
import type { World } from './world.ts'

const isKnown = knownPoints()

/** Looks at every commit as it happens: known points, numbers without gaps, fences that hold, tokens spent once. */
export interface CommitWatch {
  claimed(threadId: string, epoch: number | undefined): void
  written(commit: Commit, seqs: ReadonlyMap<string, number>): void
  refused(commit: Commit, error: unknown): void
}

export function watchCommit(world: World): CommitWatch {
  const seqs = new Map<string, number>()
  const epochs = new Map<string, number>()
  const spent = new Set<string>()

  return {
    claimed(threadId, epoch) {
      if (epoch !== undefined) epochs.set(threadId, epoch)
    },
    written(commit, after) {
      for (const { id, fence, raisesEpoch } of commit.threads) {
        const epoch = epochs.get(id) ?? 0
        if (fence !== undefined && !isKnown(commit.point))
          world.violate(`A drain commits at "${commit.point}", which is not in commit-points.ts`)
        if (fence !== undefined && fence !== epoch)
          world.violate(
            `${commit.point}: a drain of epoch ${fence} wrote to ${id}, which has ${epoch}`,
          )
        if (raisesEpoch) epochs.set(id, epoch + 1)
      }
      const appended = new Map<string, number>()
      for (const { id, append = [] } of commit.threads)
        appended.set(id, (appended.get(id) ?? 0) + append.length)
      for (const [id, count] of appended) {
        const expected = (seqs.get(id) ?? 0) + count
        const found = after.get(id) ?? expected
        if (found < expected) world.violate(`${commit.point}: thread ${id} went back to ${found}`)
        seqs.set(id, found)
      }
      for (const { jti } of commit.spent ?? []) {
        if (spent.has(jti)) world.violate(`${commit.point}: the approval ${jti} was spent twice`)
        spent.add(jti)
      }
    },
    refused({ point }, error) {
      if (!isStoreError(error)) world.violate(`${point} was refused with ${String(error)}`)
    },
  }
}
