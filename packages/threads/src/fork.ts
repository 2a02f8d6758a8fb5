import { systemClock, timeOrderedIds, type Clock, type IdSource } from '@skein/base'
import { ThreadError } from './issue.ts'
import { keepJsonText } from './json-notes.ts'
import type { Thread } from './types.ts'

export interface ForkOptions {
  /** How many turns the fork keeps. Default: all. */
  readonly turns?: number
  /** Why, as the link's relation. Default `fork`; `regenerate` and `edit` are common. */
  readonly relation?: string
  readonly threadId?: string
  readonly clock?: Clock
  readonly ids?: IdSource
}

/**
 * A new thread that begins like this one and goes its own way. Turns are shared, not copied; nothing is taken from the
 * original. A fork knows where it came from; the original need not know of its forks.
 */
export function forkThread(thread: Thread, options: ForkOptions = {}): Thread {
  const { turns: count = thread.turns.length, relation = 'fork', clock = systemClock } = options
  if (!Number.isInteger(count) || count < 0 || count > thread.turns.length) {
    throw new ThreadError(
      `A thread of ${thread.turns.length} turns cannot be forked after ${count}.`,
      {
        code: 'FORK_OUT_OF_RANGE',
        hint: 'Give a whole number from 0 to the number of turns.',
      },
    )
  }
  const ids = options.ids ?? timeOrderedIds({ clock })
  const now = new Date(clock.now()).toISOString()
  const link = { thread_id: thread.thread_id, relation, metadata: { turns: count } }
  return keepJsonText(thread, {
    ...thread,
    thread_id: options.threadId ?? ids(),
    created_at: now,
    updated_at: now,
    parent_thread_id: thread.thread_id,
    relationships: {
      ...thread.relationships,
      links: [...(thread.relationships?.links ?? []), link],
    },
    turns: thread.turns.slice(0, count),
  })
}
