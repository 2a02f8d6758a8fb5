import type { ThreadHead } from './head.ts'
import type { UserValueChange } from './user-value.ts'
import type { RuntimeEvent } from '../contract/event.ts'

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
   * `cleared`: the thread has made progress, so its deaths no longer count. `quarantined` and
   * `survived` begin and end the quarantine of a suspect (see `TrialGate`).
   */
  readonly lease?: 'released' | 'cleared' | 'quarantined' | 'survived'
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
