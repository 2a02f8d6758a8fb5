import type { ThreadEvent } from '@skein/threads'
import type { RuntimeEvent } from './event.ts'

/** Where a subscription begins and when it ends. */
export interface SubscribeOptions {
  /** Id of the last event that the reader has; without it, or with `0`, the events begin at the first. */
  readonly after?: string
  readonly signal?: AbortSignal
  /** Whether to include deltas: the pieces of an answer while a model writes it. Default true. */
  readonly includesDeltas?: boolean
  /**
   * Whether the subscription ends when the thread and its descendants have stopped working and all events were
   * delivered. It ends only after some work that came later than `since`, so it can be opened before a message is
   * sent. Default false.
   */
  readonly untilParked?: boolean
  /** For `untilParked`: the position after which the thread must have worked. Default: `after`. */
  readonly since?: string
  /** Whether the subscription ends when all stored events were delivered. Default false. */
  readonly untilCaughtUp?: boolean
}

/**
 * An event with its position in the stream. `12` is event 12 of the log; `12.3` is the third live event (a
 * delta, which is not stored) after it. An event that is written to the log during a model's answer keeps the
 * count of deltas (`13.3`), so that a reader who resumes from it does not get the same deltas again. A reader
 * that resumes from `12.3` gets the live events that followed or, if that step is over, the log after 12.
 */
export interface NumberedEvent {
  readonly id: string
  readonly event: RuntimeEvent | ThreadEvent
}
