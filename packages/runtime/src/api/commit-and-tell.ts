import type { Dispatcher } from '../dispatch/dispatcher.ts'
import type { RuntimeEvent, StoredEvent } from '../contract/event.ts'
import type { LiveBus } from '../live/live-bus.ts'
import type { Commit, CommitResult, Store, ThreadChange } from '../store/store.ts'

/** What a commit goes through. */
export interface CommitParts {
  readonly store: Store
  readonly live: LiveBus
  readonly dispatcher: Dispatcher
}

/**
 * Commits, then publishes the events to readers, then interrupts and wakes threads. Nothing is published
 * that the store could still refuse.
 */
export function createCommit({
  store,
  live,
  dispatcher,
}: CommitParts): (commit: Commit) => Promise<CommitResult> {
  return async (commit) => {
    const result = await store.commit(commit)
    for (const [id, events] of appended(commit.threads, result)) live.publish(id, events)
    for (const { id, append = [], wake } of commit.threads) {
      // First the drain whose work is in vain is interrupted, then the thread is woken for the next one.
      if (append.some(({ type }) => type === 'thread_terminated'))
        dispatcher.interrupt(id, 'terminate')
      else if (append.some((event) => event.type === 'stop_requested' && !event.afterStep))
        dispatcher.interrupt(id, 'stop')
      const at = wake && ('by' in wake ? wake.by : wake.exactly)
      if (at !== undefined && at !== null) dispatcher.wake(id, at)
    }
    return result
  }
}

/** The events of each thread with their numbers. One thread may have several changes. */
function appended(
  changes: readonly ThreadChange[],
  { seqs }: CommitResult,
): ReadonlyMap<string, readonly StoredEvent[]> {
  const events = new Map<string, RuntimeEvent[]>()
  for (const { id, append = [] } of changes) {
    const own = events.get(id)
    if (own) own.push(...append)
    else events.set(id, [...append])
  }
  const numbered = new Map<string, readonly StoredEvent[]>()
  for (const [id, own] of events) {
    const first = (seqs.get(id) ?? own.length) - own.length + 1
    numbered.set(
      id,
      own.map((event, index) => ({ seq: first + index, event })),
    )
  }
  return numbered
}
