import type { JsonObject } from '@skein/base'
import type { AuditLine, Blob, Commit, CommitResult } from './commit.ts'
import type { ThreadHead, ThreadLifecycle, TreeUsage } from './head.ts'
import type { ThreadQuery } from './thread-query.ts'
import type { UserOf, UserValue } from './user-value.ts'
import type { WaitingQuery, WaitingRow } from './waiting-query.ts'
import type { RuntimeEvent, StoredEvent } from '../contract/event.ts'

/**
 * Returns the name of the counter that counts the threads of a tenant that were removed or erased. An erased thread
 * has no owner, so its former owner learns from this counter that it is gone.
 */
export function removalsOf(tenant: string): string {
  return `removed ${tenant}`
}

/** Who claims a thread, and for how long. */
export interface ClaimOptions {
  /** The name of the process: see `Lease`. */
  readonly owner: string
  readonly leaseMs: number
  /** Kept in the lease: see `Lease`. */
  readonly address?: string | undefined
}

/**
 * The right to write to a thread: writes with this epoch are accepted until the thread is claimed
 * again. `head` contains the lease.
 */
export interface Claim {
  readonly head: ThreadHead
  readonly epoch: number
}

/** The answer to a claim of a thread that another process works on. */
export interface HeldThread {
  readonly heldBy: string
  /** When the lease expires unless it is renewed, by the clock of the store. */
  readonly until: number
  /** How long until then. The process waits this long by its own clock, so times of two clocks are never compared. */
  readonly leftMs: number
}

/** The sums over all threads of a store. */
export interface StoreTotals {
  /** The number of threads by lifecycle; a lifecycle that no thread has may be absent. */
  readonly threads: ReadonlyMap<ThreadLifecycle, number>
  readonly tokens: number
  readonly costUsd: number
}

/**
 * Where threads are stored. All implementations, such as memory and SQLite, pass one test suite
 * (`describeStore`).
 */
export interface Store {
  /** Whether everything is lost when the process ends. Default false. */
  readonly isTemporary?: boolean
  /**
   * Whether the store may store other events than a commit has, as the store of `@skein/evals` does that plays a thread
   * back: it stores the recorded ids and times. Writers then hold no writes, and read what was stored. Default false.
   */
  readonly rewritesEvents?: boolean
  /**
   * Resolves when all writes are durable. If it rejects with a `StoreError`, nothing was written; but
   * with `STORE_UNREACHABLE` the writes may have happened, because the database did not answer in time.
   */
  commit(commit: Commit): Promise<CommitResult>
  /**
   * Takes the lease of a thread and raises its epoch. If another owner holds the lease, returns who; if
   * there is no such thread, undefined. Only a lease that was released or has expired can be taken,
   * because the calls of the former owner then count as dead. The store's clock decides, so that the
   * clocks of several processes need not agree. A lease that expired without a release counts as a
   * death: see `claimedHead`, which every store uses.
   */
  claim(threadId: string, options: ClaimOptions): Promise<Claim | HeldThread | undefined>
  /**
   * Renews the leases of an owner, and returns the threads that it still holds. An expired lease is
   * renewed too, unless another owner has taken it.
   */
  renew(threadIds: readonly string[], options: ClaimOptions): Promise<readonly string[]>
  /** Releases leases of an owner: those of the given threads, or all of them. Leases of other owners stay. */
  release(owner: string, threadIds?: readonly string[]): Promise<void>
  head(threadId: string): Promise<ThreadHead | undefined>
  /**
   * Returns the thread of `owner` for which a client chose this id. Without `owner`, returns the oldest
   * thread of the tenant with this chosen id, no matter who owns it.
   */
  headByClientId(
    tenant: string,
    clientId: string,
    owner?: string | null,
  ): Promise<ThreadHead | undefined>
  list(query: ThreadQuery): Promise<readonly ThreadHead[]>
  /** Returns the questions that wait for people and clients, the oldest first. The work depends on the page alone. */
  waiting(query: WaitingQuery): Promise<readonly WaitingRow[]>
  /** Returns the tenants that have threads, in order. */
  tenants(): Promise<readonly string[]>
  /** Returns the events after a number, in order. */
  events(
    threadId: string,
    options?: { readonly after?: number; readonly limit?: number },
  ): Promise<readonly StoredEvent[]>
  /**
   * Returns the threads that are due at this time. Tenants take turns: first the longest waiting thread
   * of each tenant, then the second of each, so that a tenant with many threads does not fill the list.
   * A store that several processes share may leave out threads on which another process works.
   */
  due(now: number, limit: number): Promise<readonly string[]>
  /** Returns the earliest wake-up time of all threads; with `after`, the earliest one later than that. */
  nextWake(after?: number): Promise<number | undefined>
  /** Returns the tokens and the cost of a root thread with all descendants. */
  treeUsage(rootId: string): Promise<TreeUsage>
  /**
   * Returns the tokens and the cost of each of these threads with all its descendants, by id. Threads that do not exist
   * are left out. The cost is that of the threads that are summed, not of the trees that they are in.
   */
  subtreeUsage(threadIds: readonly string[]): Promise<ReadonlyMap<string, TreeUsage>>
  /** Returns how many threads there are and what they have used. These sums are stored, not computed on demand. */
  totals(): Promise<StoreTotals>
  /** Returns the counters that commits change (`CounterChange`) whose names begin with `prefix`. */
  counters(prefix: string): Promise<ReadonlyMap<string, number>>
  blob(hash: string): Promise<Uint8Array | undefined>
  audit(
    tree: string,
    options?: { readonly from?: number; readonly requestId?: string; readonly limit?: number },
  ): Promise<readonly { readonly index: number; readonly line: string }[]>
  /**
   * Replaces all events of a thread with those of `skeleton`, deletes the blobs that only this thread needed and its
   * open questions, forgets its owner, the client's id, labels and tools, and adds 1 to the counter that `removalsOf`
   * names.
   */
  erase(threadId: string, skeleton: readonly RuntimeEvent[]): Promise<void>
  /**
   * Removes a thread with its events, audit log and blobs, and adds 1 to the counter that `removalsOf`
   * names, by which readers of changes learn that a thread is gone.
   */
  remove(threadId: string): Promise<void>
  /** Returns the values of a user whose keys begin with the prefix, sorted by key. */
  userValues(of: UserOf, prefix?: string): Promise<readonly UserValue[]>
  /** Removes all values of a user, so that their bytes are overwritten too, and returns how many there were. */
  eraseUserValues(of: UserOf): Promise<number>
  /** Reads a setting of the whole store, such as a key that is kept in the store. */
  setting(name: string): Promise<JsonObject | undefined>
  setSetting(name: string, value: JsonObject): Promise<void>
  /** Stored states of long logs, so that after a start these logs need not be read from the beginning. Optional. */
  readonly snapshots?: Snapshots
  close(): Promise<void>
}

/**
 * Keeps snapshots: stored states of logs, in parts that only the code that computes states can read. A snapshot
 * is only a cache: if it is missing, old or damaged, its thread opens more slowly, and nothing else happens. So
 * a store may drop it at any time, and need not sync it. Erasing or removing a thread removes its snapshot.
 */
export interface Snapshots {
  /** How many new events of a log lead to a new snapshot; the first is taken after five times as many. Default 1000. */
  readonly every?: number
  /** Returns the parts of the snapshot, by their numbers; empty if this log has no snapshot. */
  read(threadId: string, logId: number): Promise<ReadonlyMap<number, Uint8Array>>
  /**
   * Writes all these parts or none, and keeps the parts with other numbers. Writes nothing if the thread
   * has another log by now.
   */
  save(threadId: string, logId: number, parts: ReadonlyMap<number, Uint8Array>): Promise<void>
}

/**
 * One record of a store, in the form in which copies and backups move it to another store. Texts of
 * events and values are moved as they were stored, so that their bytes stay the same. Data that is
 * valid only in its own store is left out: leases, ids of logs, and sums over all threads.
 */
export type StoreRow =
  | { readonly type: 'thread'; readonly head: Omit<ThreadHead, 'logId' | 'lease'> }
  | {
      readonly type: 'event'
      readonly threadId: string
      readonly seq: number
      readonly json: string
    }
  | (AuditLine & { readonly type: 'audit'; readonly index: number })
  | (Blob & { readonly type: 'blob' })
  /** A thread needs a blob. */
  | { readonly type: 'blob_name'; readonly threadId: string; readonly hash: string }
  | { readonly type: 'spent'; readonly jti: string; readonly exp: number }
  /** A counter that commits change, or `user_version`: the last version that a value of a user has had. */
  | { readonly type: 'counter'; readonly name: string; readonly value: number }
  | (UserOf & {
      readonly type: 'user_value'
      readonly key: string
      readonly json: string
      readonly version: number
      readonly updatedAt: string
    })
  | { readonly type: 'setting'; readonly name: string; readonly json: string }
