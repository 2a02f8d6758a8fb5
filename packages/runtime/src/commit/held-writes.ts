import type { Write } from '../context/write.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { Commit, ThreadChange } from '../store/commit.ts'

/*
 * Held writes (docs/decisions/0016-durable-writes.md). Some writes tell nothing that the next commit of the
 * same work could not tell as well: nothing acts between an answer and the start of its first call. Such a write is
 * held: its events change the folded state now, and they are stored together with the next commit, in the same order.
 * The commit expects that no other writer has appended in between. If one has, the log is read again, each held write is
 * committed by itself, and what was decided since is decided again.
 */

/** A commit that was not written yet. It may consist of several writes that were merged. */
export interface PlannedCommit {
  readonly commit: Commit
  /** The events of the drain's own thread. */
  readonly events: readonly RuntimeEvent[]
  readonly marksDue: boolean
  readonly isProgress: boolean
}

/** The writes that are held until the next commit. */
export interface HeldWrites extends PlannedCommit {
  /** Commits each write by itself, after the store refused them together. Returns whether it was still right. */
  readonly redo: readonly (() => Promise<boolean>)[]
  /** What to call for each held write that is lost (`Write.onLost`). */
  readonly lost: readonly (Write['onLost'] | undefined)[]
}

/** Returns the held writes with one more, which is planned for the state that they led to. */
export function holdWrite(
  held: HeldWrites | undefined,
  planned: PlannedCommit,
  { redo, onLost }: { readonly redo: () => Promise<boolean>; readonly onLost: Write['onLost'] },
): HeldWrites {
  const all = held ? mergePlanned(held, planned) : planned
  return { ...all, redo: [...(held?.redo ?? []), redo], lost: [...(held?.lost ?? []), onLost] }
}

/** Merges two commits for a thread into one. The earlier one changes no other thread. */
export function mergePlanned(earlier: PlannedCommit, later: PlannedCommit): PlannedCommit {
  const [before] = earlier.commit.threads
  const [after, ...others] = later.commit.threads
  const head = Object.entries(after!.head ?? {}).filter(([, value]) => value !== undefined)
  const change: ThreadChange = {
    ...after!,
    expectSeq: before!.expectSeq,
    append: [...earlier.events, ...later.events],
    head: { ...before!.head, ...Object.fromEntries(head) },
    mustBeLive: after!.mustBeLive ?? before!.mustBeLive,
    lease: after!.lease ?? before!.lease,
    wake: after!.wake ?? before!.wake,
  }
  const { blobs = [], audit = [], spent = [], point } = earlier.commit
  const commit: Commit = {
    point: later.commit.point === '' ? point : `${point}+${later.commit.point}`,
    isLazy: earlier.commit.isLazy && later.commit.isLazy,
    threads: [change, ...others],
    blobs: [...blobs, ...(later.commit.blobs ?? [])],
    audit: [...audit, ...(later.commit.audit ?? [])],
    spent: [...spent, ...(later.commit.spent ?? [])],
    userValues: later.commit.userValues, // a write with values of users is never held
  }
  return {
    commit,
    events: change.append!,
    marksDue: earlier.marksDue || later.marksDue,
    isProgress: earlier.isProgress || later.isProgress,
  }
}

/**
 * Thrown when a held write was lost on which a later write relies, or when the thread was terminated meanwhile: `next`
 * then decides again.
 */
export class HeldWriteLostError extends Error {}

/** Does some work. It ends without effect if a held write that it relies on could not be committed. */
export async function unlessHeldWriteLost<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof HeldWriteLostError)) throw error
    return undefined
  }
}
