import type { RunFacts } from '../recorded/run-facts.ts'
import type { RecordedUsage } from '../recorded/recorded-thread.ts'

/** What a replay has shown. */
export interface ReplayReport {
  /** The recorded thread. */
  readonly original: string
  /** The thread that the replay made; absent if it kept none. */
  readonly fork?: string | undefined
  /** Why the replay ended. */
  readonly end: ReplayEnd
  /** The first place at which the run differs from the recording; absent if it does not. */
  readonly first?: FirstDifference | undefined
  /** Requests that were answered from the recording, and requests that were sent. */
  readonly requests: { readonly recorded: number; readonly sent: number }
  /** What the requests that were sent have used. */
  readonly spent: RecordedUsage
  /** The facts of the replayed run. */
  readonly facts: RunFacts
}

/** How a replay ended. */
export type ReplayEnd =
  | { readonly type: 'done' }
  /** A model made a call that the recording does not have, and no stub answers it. */
  | { readonly type: 'unknown_call'; readonly toolName: string; readonly raw: unknown }
  /** The new definitions ask a person who was not asked. */
  | { readonly type: 'waits_for_approval'; readonly toolName: string }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'budget' }

/** The first place at which two runs differ. */
export interface FirstDifference {
  readonly kind: DifferenceKind
  readonly threadId: string
  /** The step, from 1. */
  readonly step: number
  /** One line for people, equal for threads that differ in the same way. */
  readonly summary: string
}

/** What differs first. */
export type DifferenceKind =
  /** Parts of the first request that changed. */
  | 'instructions'
  | 'tools'
  | 'model'
  | 'settings'
  | 'history'
  /** A schema parses the recorded arguments to something else than what ran. */
  | 'arguments'
  /** A person would now be asked, or no longer. */
  | 'asks_approval'
  | 'asks_no_approval'
  /** The thread fails where it did not. */
  | 'fails'
  /** Anything else in the log. */
  | 'events'
