import { type Clock, type IdSource, systemClock, timeOrderedIds } from '@skein/base'
import { ThreadError } from '../issue.ts'
import { keepJsonText } from '../json/json-stringify.ts'
import type { Thread } from './thread.ts'

/** Settings of `forkThread`. */
export interface ForkOptions {
  /** The number of turns, from the first on, that the fork keeps. Default: all. */
  readonly turns?: number
  /** The relation of the link to the original thread. Default `fork`; `regenerate` and `edit` are common. */
  readonly relation?: string
  readonly threadId?: string
  readonly clock?: Clock
  readonly ids?: IdSource
}

/**
 * Creates a new thread that starts with the turns of the given thread. The turns are shared, not copied, and
 * the original is not changed. The fork links to the original; the original has no link to its forks.
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
