import type { ThreadHead } from '@skein/runtime'

/**
 * The thread of a request: whose it is and how far it is, without sums over its descendants. Only operations that
 * answer with a whole thread read it with `threads.get`.
 */
export interface ThreadIdentity extends Pick<
  ThreadHead,
  | 'id'
  | 'tenant'
  | 'owner'
  | 'clientId'
  | 'agent'
  | 'parentId'
  | 'rootId'
  | 'title'
  | 'firstWords'
  | 'tags'
  | 'lifecycle'
  | 'waiting'
  | 'seq'
> {
  /** A number in stores, a text in the API. */
  readonly wakeAt: number | string | null
}
