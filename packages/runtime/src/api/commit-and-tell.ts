import type { Dispatcher } from '../dispatch/dispatcher.ts'
import type { RuntimeEvent, StoredEvent } from '../event.ts'
import type { Interruption } from '../context.ts'
import type { LiveBus } from '../live/live-bus.ts'
import type { Commit, CommitResult, Store, ThreadChange } from '../store/store.ts'

/** What a commit goes through. */
export interface CommitParts {
  readonly store: Store
  readonly live: LiveBus
  readonly dispatcher: Dispatcher
}

/**
 * Commits, then tells those who watch, then interrupts and wakes the threads that want it. Nobody is told
 * of anything that could still be refused.
 */
export function createCommit({
  store,
  live,
  dispatcher,
}: CommitParts): (commit: Commit) => Promise<CommitResult> {
  return async (commit) => {
    const result = await store.commit(commit)
    for (const [id, events] of appended(commit.threads, result)) live.publish(id, events)
    for (const change of commit.threads) {
      const { id, wake } = change
      // First the drain that works in vain, then the one that is to take over.
      const interruption = interruptionOf(change)
      if (interruption) dispatcher.interrupt(id, interruption)
      const at = wake && ('by' in wake ? wake.by : wake.exactly)
      if (at !== undefined && at !== null) dispatcher.wake(id, at)
    }
    return result
  }
}

/** Whether what runs has to be cut short: by the stop button, or by the end of the thread. */
function interruptionOf({ append = [] }: ThreadChange): Interruption | undefined {
  for (const event of append) {
    if (event.type === 'thread_terminated') return 'terminate'
    if (event.type === 'stop_requested' && !event.afterStep) return 'stop'
  }
  return undefined
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
