import type { ThreadHead, ThreadLifecycle } from './head.ts'

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
  /** Only threads with a grant that ends after this time, even if it was revoked. */
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
