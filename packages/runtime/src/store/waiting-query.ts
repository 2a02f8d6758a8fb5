import type { ThreadHead } from './head.ts'

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
