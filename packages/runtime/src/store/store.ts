import { SkeinError, type JsonObject, type JsonValue } from '@skein/base'
import type { RuntimeEvent, StoredEvent } from '../contract/event.ts'

/** The state of a thread in lists. `docs/http.md` has the table of transitions. */
export type ThreadLifecycle =
  | 'idle'
  | 'queued'
  | 'running'
  | 'waiting'
  | 'stopping'
  | 'stopped'
  | 'failed'
  | 'terminated'
  | 'erased'

/** The head of a thread: one row with the facts that lists and queries need, so that they need not read its log. */
export interface ThreadHead {
  readonly id: string
  readonly tenant: string
  readonly owner: string | null
  readonly agent: string
  readonly parentId: string | null
  /** The id of the outermost ancestor; for a thread without a parent, its own id. */
  readonly rootId: string
  readonly title: string | null
  /** The beginning of the first message that a person or a parent sent, safe to show on one line. */
  readonly firstWords: string | null
  /** The thread of which this one is a copy, and the last message that was copied; null if this is no copy. */
  readonly forkedFrom: { readonly threadId: string; readonly messageId: string | null } | null
  readonly tags: readonly string[]
  /** The names of the tools that the thread's models have called, each once, in the order of the first calls. */
  readonly tools: readonly string[]
  /** When the last grant (a standing permission for a tool) ends, revoked or not; null if there never was one. */
  readonly grantedUntil: number | null
  /** An id that the client chose, unique among the threads of one owner in the tenant. */
  readonly clientId: string | null
  readonly lifecycle: ThreadLifecycle
  /** How many questions to a person (calls that wait, requests for variables) are open. */
  readonly waiting: number
  /** The tokens used by the thread itself, without its descendants. */
  readonly tokens: number
  /** The part of `tokens` that models have written; the rest is what they have read. */
  readonly outputTokens: number
  /** The part of the tokens read that came from a vendor's cache. */
  readonly cachedTokens: number
  /** The known cost of the thread itself, without the answers that `unpriced` counts. */
  readonly costUsd: number
  /** The number of answers whose cost is not known. */
  readonly unpriced: number
  readonly createdAt: number
  readonly updatedAt: number
  /** Number of the last event. */
  readonly seq: number
  /**
   * Orders the latest changes of all threads: a commit, an erasure or a new thread sets it to a number
   * greater than all that readers have seen. Two threads may have the same number. Claims do not change it.
   */
  readonly change: number
  /**
   * The id of the log. A thread gets a new one when it is created and when its log is replaced (erasure); none
   * is ever used twice in one store. A state that was computed under another id belongs to another log.
   */
  readonly logId: number
  /**
   * A number that each claim raises. Writes with a lower number are refused, so that a process that has
   * lost the thread cannot write any more.
   */
  readonly epoch: number
  /** When work on the thread is to begin, in ms; null while the thread waits for a message or an answer. */
  readonly wakeAt: number | null
  /**
   * How often the thread has failed since its last progress: the work on it threw, or a process died
   * while only this thread was working (a trial). See `limits.drainAttempts`.
   */
  readonly attempts: number
  /** Which process works on the thread; null if none does. A process that dies leaves its lease behind. */
  readonly lease: Lease | null
}

/** The right of one process to work on a thread, until a certain time by the store's clock. */
export interface Lease {
  /** The name of the process. No two processes ever have the same name, not even one after the other. */
  readonly owner: string
  /** When the lease expires unless it is renewed, in ms, by the clock of the store. */
  readonly until: number
  /**
   * How many owners in a row did not release the lease, because they died or lost it. Progress of the
   * thread resets the number to 0; above 0, the thread is suspected of killing its process.
   */
  readonly deaths: number
  /** How many times the suspected thread has worked alone (a trial) without a crash since its last progress. */
  readonly survived: number
  /** Whether the death of this owner counts as a failure of the thread, because no other thread worked at that time. */
  readonly isOnTrial: boolean
  /** The address at which other nodes reach the owner; absent if the owner gave none in its claim. */
  readonly address?: string
}

/** The sums of a thread and all its descendants. */
export type TreeUsage = Pick<ThreadHead, 'tokens' | 'costUsd' | 'unpriced' | 'waiting'>

/** The columns of a thread's row that a writer may set. */
export type HeadPatch = Partial<
  Pick<
    ThreadHead,
    | 'agent'
    | 'title'
    | 'tags'
    | 'owner'
    | 'lifecycle'
    | 'waiting'
    | 'tokens'
    | 'outputTokens'
    | 'cachedTokens'
    | 'costUsd'
    | 'unpriced'
    | 'attempts'
  >
>

/** The columns of a new thread that the writer sets; the store sets the others. */
export type NewThread = Pick<
  ThreadHead,
  'tenant' | 'owner' | 'agent' | 'parentId' | 'rootId' | 'title' | 'tags' | 'clientId' | 'createdAt'
>

/** The changes of one commit to one thread. All conditions are checked before anything is written. */
export interface ThreadChange {
  readonly id: string
  /**
   * Creates the thread, which must not exist yet (`THREAD_EXISTS`). Without `create`, the thread must exist
   * (`THREAD_NOT_FOUND`).
   */
  readonly create?: NewThread
  /**
   * The epoch of the writer's claim; if the thread has another epoch, the commit is refused (`FENCED`).
   */
  readonly fence?: number
  /** Number of the last event that the writer has seen; if the log is longer, the commit is refused (`LOG_MOVED`). */
  readonly expectSeq?: number
  /** Refuses the commit if the thread is terminated or erased (`THREAD_TERMINATED`). */
  readonly mustBeLive?: boolean
  readonly append?: readonly RuntimeEvent[]
  readonly head?: HeadPatch
  /** Raises the epoch, so that the process that has claimed the thread can no longer write to it. */
  readonly raisesEpoch?: boolean
  /**
   * Changes the lease of the thread, if it has one. `released`: the owner has stopped working.
   * `cleared`: the thread has made progress, so its deaths no longer count. `on_trial` and `survived`
   * begin and end the time in which a suspected thread works alone (see `TrialGate`).
   */
  readonly lease?: 'released' | 'cleared' | 'on_trial' | 'survived'
  /**
   * When work on the thread is to begin next. `by` asks for work by this time, but keeps an earlier time.
   * `exactly` replaces the time; it is used when work ends. Use `exactly` with `expectSeq`: otherwise it would
   * erase the wake-up of a message that arrived during the work, and the message would never be processed.
   */
  readonly wake?: { readonly by: number } | { readonly exactly: number | null }
}

/** One line of a root thread's audit log. */
export interface AuditLine {
  /** The root thread. */
  readonly tree: string
  readonly requestId: string
  /**
   * The position of the line among the lines of its request; a second line with the same position is
   * refused (`STATE_CONFLICT`).
   */
  readonly seq: number
  readonly line: string
}

/**
 * Writes that belong together. A store performs all of them or none, in one transaction, and its promise
 * resolves when they are durable. A commit is plain data, so it is the same for every store and every test.
 */
export interface Commit {
  /**
   * The name of the place in the code, for traces, tests and crash coverage. If a commit combines the
   * writes of several places, it has all their names in order, with `+` between them.
   */
  readonly point: string
  /**
   * Whether the commit need not be synced to disk by itself. It is visible to every reader when its
   * promise resolves, and survives the death of the process; a failure of the machine may undo it until
   * a later commit that is not lazy has resolved. A store without that difference ignores `isLazy`.
   */
  readonly isLazy?: boolean
  readonly threads: readonly ThreadChange[]
  /** Contents by hash. A content whose hash is already stored is not written again. */
  readonly blobs?: readonly Blob[]
  readonly audit?: readonly AuditLine[]
  /** Approval tokens to be marked as spent; a token that is already spent is refused (`TOKEN_SPENT`). */
  readonly spent?: readonly { readonly jti: string; readonly exp: number }[]
  readonly counters?: readonly CounterChange[]
  /** Values of users to set or remove. A commit may have only these and change no thread. */
  readonly userValues?: readonly UserValueChange[]
}

/** A change of a counter of the whole store, e.g. of what a tenant has spent today. */
export interface CounterChange {
  /** Begins with `limit `; other names belong to the store. */
  readonly name: string
  /** The number to add; a counter that does not exist counts as 0. `null` removes the counter. */
  readonly add: number | null
  /** Refuses the commit (`LIMIT_REACHED`) unless the counter is below this number before the addition. */
  readonly below?: number
}

/** A user of a tenant. The same name in two tenants means two users. */
export interface UserOf {
  readonly tenant: string
  readonly user: string
}

/** A value that belongs to a user and that all threads of the user share. */
export interface UserValue {
  readonly key: string
  readonly value: JsonValue
  /** A new number with every write. No number is used twice in one store, not even after the value was removed. */
  readonly version: number
  readonly updatedAt: string
}

/** The change of one commit to one value of a user. */
export interface UserValueChange extends UserOf {
  readonly key: string
  /** Null removes the value. */
  readonly value: JsonValue | null
  /** The time of the change (ISO 8601). */
  readonly at: string
  /**
   * The version that the writer has read, or null if there was no value. If the value has another version,
   * the commit is refused (`VALUE_MOVED`). If `expectVersion` is missing, the value is set in any case.
   */
  readonly expectVersion?: number | null
}

/**
 * Returns the name of the counter that counts the threads of a tenant that were removed or erased. An erased thread
 * has no owner, so its former owner learns from this counter that it is gone.
 */
export function removalsOf(tenant: string): string {
  return `removed ${tenant}`
}

/** The largest number of values of one user; a commit beyond it is refused (`VALUE_LIMIT`). */
export const MAX_USER_VALUES = 1000

/** Bytes that are stored once under their hash. */
export interface Blob {
  /** SHA-256 of the bytes, hex. */
  readonly hash: string
  readonly bytes: Uint8Array
}

/** The result of a durable commit. */
export interface CommitResult {
  /** Number of the last event of each thread, by id. */
  readonly seqs: ReadonlyMap<string, number>
  /** Index of this commit's first audit line in the audit log of its tree of threads. */
  readonly auditFrom?: number
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

/** Selects the threads that `list` returns. Absent conditions do not filter. */
export interface ThreadQuery {
  readonly tenant?: string
  readonly owner?: string
  readonly agent?: string
  readonly lifecycle?: ThreadLifecycle
  readonly parentId?: string | null
  readonly rootId?: string
  /** Whether the thread waits for a person, e.g. with a call that needs approval. */
  readonly isWaiting?: boolean
  readonly search?: string
  /** Only threads whose id begins or ends with this text. */
  readonly idPart?: string
  readonly tag?: string
  /** Only threads that have called this tool, and the root threads above them. */
  readonly tool?: string
  /** Only threads with a grant (standing permission for a tool) that ends after this time, even if it was revoked. */
  readonly grantedAfter?: number
  /** Forks of this thread. */
  readonly forkedFrom?: string
  /**
   * Only threads that come after this place in the order of changes: by number, and by id for the same
   * number. They are listed in that order, the earliest change first, whatever `sort` says.
   */
  readonly changedAfter?: Pick<ThreadHead, 'change' | 'id'>
  /** The order. Default `activity`. All except `oldest` begin with the latest. */
  readonly sort?: 'activity' | 'created' | 'oldest' | 'change'
  /** Only threads that come after this place in the order of `sort`: see `placeOf`. Not with `changedAfter`. */
  readonly after?: ListPlace
  /** Default 50, at most 1000. */
  readonly limit?: number
  readonly offset?: number
}

/** The place of a thread in an order: the number by which threads are sorted, and the id for equal numbers. */
export interface ListPlace {
  readonly at: number
  readonly id: string
}

/** What a person or a client is asked for: see `WaitingItem` of the API. */
export type WaitingKind = 'approval' | 'input' | 'in_doubt' | 'variables'

/**
 * A question that waits for a person or a client. The store derives these rows from the events of each commit
 * and writes them in the same transaction, so lists of questions need not read any log.
 */
export interface WaitingRow extends Pick<ThreadHead, 'tenant' | 'owner' | 'agent' | 'rootId'> {
  readonly threadId: string
  /** The id of the interrupt, or of the request for variables. */
  readonly interruptId: string
  /** What is asked about, e.g. a call. A later question about the same subject replaces this one. */
  readonly subject: string
  readonly kind: WaitingKind
  /** When the question was opened, in ms. */
  readonly openedAt: number
  /** When a request for variables expires, in ms; null for questions that stay open until their thread closes them. */
  readonly until: number | null
}

/** The place of a question in the order of questions: the oldest first, and by ids for the same time. */
export type WaitingPlace = Pick<WaitingRow, 'openedAt' | 'threadId' | 'interruptId'>

/** Selects the questions that `waiting` returns. Absent conditions do not filter. */
export interface WaitingQuery extends Partial<
  Pick<WaitingRow, 'tenant' | 'agent' | 'rootId' | 'threadId' | 'interruptId' | 'kind'>
> {
  readonly owner?: string
  /** Only questions of threads whose id begins or ends with this text. */
  readonly threadIdPart?: string
  /** Only questions whose id begins or ends with this text. */
  readonly interruptIdPart?: string
  /** Leaves out the requests that have expired by this time. */
  readonly openAt?: number
  /** Only questions after this place. */
  readonly after?: WaitingPlace
  /** Default 50, at most 1000. */
  readonly limit?: number
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
   * thread of the tenant with this chosen id, whoever owns it.
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

/** The reason why a commit was refused or a store cannot be used. */
export type StoreErrorCode =
  | 'THREAD_EXISTS'
  | 'THREAD_NOT_FOUND'
  | 'THREAD_TERMINATED'
  | 'CLIENT_ID_TAKEN'
  | 'FENCED'
  | 'LOG_MOVED'
  | 'VALUE_MOVED'
  | 'VALUE_LIMIT'
  | 'STATE_CONFLICT'
  | 'TOKEN_SPENT'
  | 'LIMIT_REACHED'
  | 'NOT_JSON'
  | 'TEXT_INVALID'
  | 'STORE_LOCKED'
  | 'STORE_VERSION'
  | 'STORE_CLOSED'
  | 'STORE_CORRUPT'
  | 'STORE_FULL'
  | 'STORE_READ_ONLY'
  | 'STORE_LIMIT'
  | 'STORE_UNREACHABLE'

/** The error for a commit that was refused, or a store that cannot be used. */
export class StoreError extends SkeinError {
  declare readonly code: StoreErrorCode

  constructor(
    message: string,
    options: { readonly code: StoreErrorCode; readonly hint?: string; readonly cause?: unknown },
  ) {
    super(message, options)
  }
}

const UNWRITABLE: ReadonlySet<string> = new Set([
  'STORE_FULL',
  'STORE_READ_ONLY',
  'STORE_LIMIT',
  'STORE_UNREACHABLE',
])

/**
 * Whether the store cannot be written at the moment, so that not even a failure can be recorded. The
 * store works again once it has space, permission or a connection.
 */
export function isUnwritable(error: unknown): error is StoreError {
  return isStoreError(error) && UNWRITABLE.has(error.code)
}

/** Whether this is a store's error (with this code, if given); it may come from another copy of this package. */
export function isStoreError(error: unknown, code?: StoreErrorCode): error is StoreError {
  return SkeinError.is(error) && error.name === 'StoreError' && (!code || error.code === code)
}
