import type { RuntimeEvent } from '../contract/event.ts'
import type { ValueUse } from '../thread/value-reads.ts'
import type { GovernanceWrites } from '../governance/session-governor.ts'
import type { Blob, HeadPatch, ThreadChange } from '../store/commit.ts'

/** Commits a write. `point` names the commit in traces, tests and the simulation of crashes. */
export type CommitWrite = (point: string, write: Write) => Promise<void>

/**
 * What a write says, which decides how it is stored:
 *
 * - `begin`: only that something begins. It is written immediately but not synced by itself, so it survives the death of
 *   the process, and a failure of the machine only if a later commit was synced.
 * - `outcome`: that something was done. It resets the thread's count of failed attempts, because the thread is not
 *   stuck.
 * - `change`: anything else, e.g. the start of a call that writes, what a hook changed, a failure.
 */
export type WriteKind = 'begin' | 'outcome' | 'change'

/** What one action commits together. */
export interface Write {
  /** Default `change`. */
  readonly kind?: WriteKind
  readonly events?: readonly RuntimeEvent[]
  /**
   * Records that the governor wants committed immediately; if absent, the pending records of
   * the open governor are committed.
   */
  readonly governance?: GovernanceWrites
  /**
   * Changes of other threads in the same commit. A change of the parent with `mustBeLive` is left out if the
   * parent was terminated, erased or removed meanwhile.
   */
  readonly others?: readonly ThreadChange[]
  /** The events to write instead of `events` if the change of the parent is left out. */
  readonly undelivered?: readonly RuntimeEvent[]
  readonly blobs?: readonly Blob[]
  readonly head?: HeadPatch
  readonly wake?: ThreadChange['wake']
  /**
   * Which values of the thread were read, and which are set. If another writer has set a value between its
   * reading and its setting here, the commit is refused with `STATE_CONFLICT`.
   */
  readonly values?: ValueUse
  /**
   * Called if the write cannot be stored, because another drain has claimed the thread, or the store or this work has
   * failed, and this drain does not try again.
   */
  readonly onLost?: () => void
  /** Returns the write that replaces this one if it is refused with `STATE_CONFLICT`. */
  readonly onConflict?: (error: unknown) => Omit<Write, 'values' | 'governance' | 'onLost'>
  /** Makes the store reject the commit when another writer has appended to the log meanwhile. */
  readonly requiresUnchangedLog?: boolean
  /** Gives the lease back with this commit, because the work ends. */
  readonly releases?: boolean
  /**
   * Lets the write join the next commit of the same drain: its events change the state now, and are
   * stored together with the next ones. Only for a write on which nothing outside this work relies until then.
   * Before an action that does not begin with a commit, the write is committed by itself.
   *
   * If another writer appends to the log in between, `true` commits the same write again. A function is
   * called instead: it commits what is right then, with the `commit` that it gets, and returns whether the
   * write was still right.
   */
  readonly joinsNext?: true | ((commit: CommitWrite) => Promise<boolean>)
}
