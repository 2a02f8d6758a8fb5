import { SkeinError, type JsonObject } from '@skein/base'
import type { RuntimeEvent, StoredEvent } from '../contract/event.ts'

/** What a thread is doing, as lists show it. */
export type ThreadLifecycle =
  'idle' | 'running' | 'waiting' | 'stopped' | 'failed' | 'terminated' | 'erased'

/** One row per thread: what lists and queries need, so that they do not read logs. */
export interface ThreadHead {
  readonly id: string
  readonly tenant: string
  readonly owner: string | null
  readonly agent: string
  readonly parentId: string | null
  /** The outermost ancestor; its own id for a thread without parent. */
  readonly rootId: string
  readonly title: string | null
  readonly tags: readonly string[]
  /** An id of the client's choosing, unique within the tenant. */
  readonly clientId: string | null
  readonly lifecycle: ThreadLifecycle
  /** Interrupts that wait for a person. */
  readonly waiting: number
  readonly tokens: number
  readonly costUsd: number
  readonly createdAt: number
  readonly updatedAt: number
  /** Number of the last event. */
  readonly seq: number
  /** The fence: each claim raises it, and a writer with a lower one is refused. */
  readonly epoch: number
  /** When the thread wants to be drained, in ms; null when it waits for a message or an answer. */
  readonly wakeAt: number | null
  /** Claims since the last progress. */
  readonly attempts: number
}

/** Columns of the head that a writer may set. */
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
    | 'costUsd'
    | 'attempts'
  >
>

/** The columns of a new thread that the writer gives; the store sets the others. */
export type NewThread = Pick<
  ThreadHead,
  'tenant' | 'owner' | 'agent' | 'parentId' | 'rootId' | 'title' | 'tags' | 'clientId' | 'createdAt'
>

/** What one commit does to one thread. Conditions are checked before anything is written. */
export interface ThreadChange {
  readonly id: string
  /** The thread must not exist (`THREAD_EXISTS`). Without it, it must (`THREAD_NOT_FOUND`). */
  readonly create?: NewThread
  /** The epoch the writer claimed; another one is refused (`FENCED`). */
  readonly fence?: number
  /** The last event the writer has seen; a later one is refused (`LOG_MOVED`). */
  readonly expectSeq?: number
  /** A terminated or erased thread is refused (`THREAD_TERMINATED`). */
  readonly mustBeLive?: boolean
  readonly append?: readonly RuntimeEvent[]
  readonly head?: HeadPatch
  /** Raises the epoch, so that the drain that has claimed the thread can write no more. */
  readonly raisesEpoch?: boolean
  /**
   * `by`: the thread wants to be drained by then; an earlier time stays. `exactly` replaces the time and is
   * for a drain that parks. Use it with `expectSeq`: otherwise a message that arrived during the drain
   * would have its wake-up erased and would never be processed.
   */
  readonly wake?: { readonly by: number } | { readonly exactly: number | null }
}

/** One line of a root thread's audit log. */
export interface AuditLine {
  /** The root thread. */
  readonly tree: string
  readonly requestId: string
  /** Position in the request; a second line with the same one is refused (`STATE_CONFLICT`). */
  readonly seq: number
  readonly line: string
}

/**
 * Writes that belong together. A store does all of them or none, in one transaction, and its promise
 * resolves when they are durable. A commit is plain data, so every store and every test sees the same.
 */
export interface Commit {
  /** Names the point in the code, for traces, tests and crash coverage. */
  readonly point: string
  readonly threads: readonly ThreadChange[]
  /** Contents by hash; a hash that is stored already is not written again. */
  readonly blobs?: readonly Blob[]
  readonly audit?: readonly AuditLine[]
  /** Spent approval tokens: one that is spent already is refused (`TOKEN_SPENT`). */
  readonly spent?: readonly { readonly jti: string; readonly exp: number }[]
}

/** Bytes that are stored once under their hash. */
export interface Blob {
  /** SHA-256 of the bytes, hex. */
  readonly hash: string
  readonly bytes: Uint8Array
}

/** What a store returns for a commit that is durable. */
export interface CommitResult {
  /** Number of the last event of each thread, by id. */
  readonly seqs: ReadonlyMap<string, number>
  /** Index of the first audit line of this commit in its tree. */
  readonly auditFrom?: number
}

/** The right to write to a thread: writes with its epoch are accepted until somebody claims the thread again. */
export interface Claim {
  readonly head: ThreadHead
  readonly epoch: number
}

/** Which threads `list` returns. Conditions that are left out do not filter. */
export interface ThreadQuery {
  readonly tenant?: string
  readonly owner?: string
  readonly agent?: string
  readonly lifecycle?: ThreadLifecycle
  readonly parentId?: string | null
  readonly rootId?: string
  /** With interrupts that wait for a person. */
  readonly isWaiting?: boolean
  readonly search?: string
  readonly tag?: string
  /** Default `activity`. */
  readonly sort?: 'activity' | 'created' | 'oldest'
  /** Default 50, at most 1000. */
  readonly limit?: number
  readonly offset?: number
}

/** Where threads are stored. Memory, SQLite and others implement it, and all pass one suite (`describeStore`). */
export interface Store {
  /** Resolves when all of it is durable; rejects with a `StoreError` and then nothing was written. */
  commit(commit: Commit): Promise<CommitResult>
  /** Raises the epoch and `attempts` of a thread, and returns its head after that. */
  claim(threadId: string): Promise<Claim | undefined>
  head(threadId: string): Promise<ThreadHead | undefined>
  headByClientId(tenant: string, clientId: string): Promise<ThreadHead | undefined>
  list(query: ThreadQuery): Promise<readonly ThreadHead[]>
  /** Events after a number, in order. */
  events(
    threadId: string,
    options?: { readonly after?: number; readonly limit?: number },
  ): Promise<readonly StoredEvent[]>
  /** Threads that want to be drained by then, the longest waiting first. */
  due(now: number, limit: number): Promise<readonly string[]>
  /** The earliest time any thread wants to be drained; with `after`, the earliest later than that. */
  nextWake(after?: number): Promise<number | undefined>
  /** Tokens and cost of a whole tree. */
  treeUsage(rootId: string): Promise<{ readonly tokens: number; readonly costUsd: number }>
  blob(hash: string): Promise<Uint8Array | undefined>
  audit(
    tree: string,
    options?: { readonly from?: number; readonly requestId?: string },
  ): Promise<readonly { readonly index: number; readonly line: string }[]>
  /** Replaces the events of a thread by `skeleton` and deletes blobs that no other thread names. */
  erase(threadId: string, skeleton: readonly RuntimeEvent[]): Promise<void>
  /** Removes a thread with its events, audit log and blobs. */
  remove(threadId: string): Promise<void>
  /** Small settings of the whole store, such as the development key. */
  setting(name: string): Promise<JsonObject | undefined>
  setSetting(name: string, value: JsonObject): Promise<void>
  close(): Promise<void>
}

/** Why a commit was refused or a store cannot be used. */
export type StoreErrorCode =
  | 'THREAD_EXISTS'
  | 'THREAD_NOT_FOUND'
  | 'THREAD_TERMINATED'
  | 'CLIENT_ID_TAKEN'
  | 'FENCED'
  | 'LOG_MOVED'
  | 'STATE_CONFLICT'
  | 'TOKEN_SPENT'
  | 'NOT_JSON'
  | 'STORE_LOCKED'
  | 'STORE_VERSION'
  | 'STORE_CLOSED'
  | 'STORE_CORRUPT'

/** A commit that was refused, or a store that cannot be used. */
export class StoreError extends SkeinError {
  declare readonly code: StoreErrorCode

  constructor(
    message: string,
    options: { readonly code: StoreErrorCode; readonly hint?: string; readonly cause?: unknown },
  ) {
    super(message, options)
  }
}

/** True for an error of a store, also from another copy of this package; with `code`, for that code. */
export function isStoreError(error: unknown, code?: StoreErrorCode): error is StoreError {
  return SkeinError.is(error) && error.name === 'StoreError' && (!code || error.code === code)
}
