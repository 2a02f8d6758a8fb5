import type { SubagentRegistryEntry } from './thread-state.ts'
import type { ThreadHead } from '../store/head.ts'

/**
 * The cost of model requests in US dollars. Null when the cost of any of them is unknown, because a sum of the
 * others would be too low; `threads.cost` shows which models have no price.
 */
export type CostUsd = number | null

/** A thread as the API shows it. Times are ISO 8601 texts in UTC. */
export interface ThreadInfo extends Omit<
  ThreadHead,
  | 'costUsd'
  | 'unpriced'
  | 'createdAt'
  | 'updatedAt'
  | 'wakeAt'
  | 'lease'
  | 'logId'
  | 'change'
  | 'tools'
  | 'grantedUntil'
> {
  /** The cost of the thread itself, without its descendants. */
  readonly costUsd: CostUsd
  readonly createdAt: string
  /** The time of the last event. */
  readonly updatedAt: string
  /** When the thread works next; null while it waits for a message or an answer. */
  readonly wakeAt: string | null
  /** The part of `tokens` that models have read as input. */
  readonly inputTokens: number
  /** Sums over the thread and all its descendants; `waiting` counts what waits for a person or a client. */
  readonly tree: { readonly tokens: number; readonly costUsd: CostUsd; readonly waiting: number }
}

/** A child in its parent's list, in the form that clients get: `createdAt` is ISO 8601 text. */
export type ChildInfo = Omit<SubagentRegistryEntry, 'createdAt'> & {
  readonly createdAt?: string
  /** The thread of the child, with its state, tokens, cost and times; null if it was removed. */
  readonly thread: ThreadInfo | null
}
