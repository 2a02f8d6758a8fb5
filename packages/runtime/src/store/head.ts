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
  /** When the last grant ends, revoked or not; null if there never was one. */
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
   * thread resets the number to 0; above 0, the thread is a suspect: it may have killed its process.
   */
  readonly deaths: number
  /** How many quarantines the suspect has survived since its last progress. */
  readonly survived: number
  /** Whether the thread is in quarantine, so that the death of this owner is a strike. */
  readonly isQuarantined: boolean
  /** The address at which other nodes reach the owner; absent if the owner gave none in its claim. */
  readonly address?: string
}

/** The sums of a thread and all its descendants. */
export type TreeUsage = Pick<ThreadHead, 'tokens' | 'costUsd' | 'unpriced' | 'waiting'>

/** Whether no process works on the thread and it is not due. `wakeAt` is a number in stores and a text in the API. */
export function isParked(
  thread: Pick<ThreadHead, 'lifecycle'> & { readonly wakeAt: number | string | null },
  now: number,
): boolean {
  const { lifecycle, wakeAt } = thread
  if (lifecycle === 'running' || lifecycle === 'queued' || lifecycle === 'stopping') return false
  return wakeAt === null || new Date(wakeAt).getTime() > now
}
