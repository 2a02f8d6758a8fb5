import { type Clock, type IdSource, isObject, systemClock, timeOrderedIds } from '@skein/base'
import { joinPointer, ThreadError } from '../issue.ts'
import { keepJsonText } from '../json/json-stringify.ts'
import type { Thread } from './thread.ts'

/** Settings of `forkThread`. */
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

/** One difference. A value that is absent on one side has no `before`, or no `after`. */
export interface Difference {
  readonly pointer: string
  readonly kind: 'added' | 'removed' | 'changed'
  readonly before?: unknown
  readonly after?: unknown
}

/** What `diffThreads` returns. */
export interface ThreadDiff {
  /** How many turns both begin with: where a fork left, or where a client and a server part. */
  readonly commonTurns: number
  readonly differences: readonly Difference[]
}

/** What differs between two threads, place by place. `null` and absent are different things. */
export function diffThreads(before: Thread, after: Thread): ThreadDiff {
  const differences = [...diffValues(before, after, '')]
  const shortest = Math.min(before.turns.length, after.turns.length)
  let commonTurns = 0
  for (; commonTurns < shortest; commonTurns++) {
    const [left, right] = [before.turns[commonTurns], after.turns[commonTurns]]
    if (!diffValues(left, right, '').next().done) break
  }
  return { commonTurns, differences }
}

/** The differences between two JSON values, in the order of the first. */
function* diffValues(
  before: unknown,
  after: unknown,
  pointer: string,
): Generator<Difference, void, undefined> {
  if (before === after || (Number.isNaN(before) && Number.isNaN(after))) return
  if (Array.isArray(before) && Array.isArray(after)) {
    const length = Math.max(before.length, after.length)
    for (let index = 0; index < length; index++) {
      const place = joinPointer(pointer, index)
      if (index >= before.length) yield { pointer: place, kind: 'added', after: after[index] }
      else if (index >= after.length)
        yield { pointer: place, kind: 'removed', before: before[index] }
      else yield* diffValues(before[index], after[index], place)
    }
  } else if (isObject(before) && isObject(after)) {
    for (const key of Object.keys(before)) {
      if (isAbsent(before, key)) continue
      const place = joinPointer(pointer, key)
      if (isAbsent(after, key)) yield { pointer: place, kind: 'removed', before: before[key] }
      else yield* diffValues(before[key], after[key], place)
    }
    for (const key of Object.keys(after)) {
      if (isAbsent(before, key) && !isAbsent(after, key))
        yield { pointer: joinPointer(pointer, key), kind: 'added', after: after[key] }
    }
  } else yield { pointer, kind: 'changed', before, after }
}

/** A member that is undefined is absent, as in JSON. */
function isAbsent(fields: { readonly [key: string]: unknown }, key: string): boolean {
  return !Object.hasOwn(fields, key) || fields[key] === undefined
}
