import type { ObsoletingEvent } from '../contract/obsoleting-event.ts'
import type { RuntimeEvent, StoredEvent } from '../contract/event.ts'
import type { Dispatcher } from '../dispatch/dispatcher.ts'
import type { LiveBus } from '../live/live-bus.ts'
import type { Commit, CommitResult, ThreadChange } from '../store/commit.ts'
import type { Store } from '../store/store.ts'
import type { Outage } from './outage.ts'

/** The parts of the runtime that `createCommit` uses. */
interface CommitParts {
  readonly store: Store
  readonly live: LiveBus
  readonly dispatcher: Dispatcher
  readonly edits: EditListeners
  readonly outage?: Outage
  /** Tells the other nodes that share the store what was committed. */
  readonly node?: { committed(commit: Commit, result: CommitResult): void } | undefined
}

/** Tells the running requests and calls of a thread about edits and messages that make them obsolete. */
export class EditListeners {
  readonly #listeners = new Map<string, Set<(event: ObsoletingEvent) => void>>()

  listen(threadId: string, listener: (event: ObsoletingEvent) => void): () => void {
    const own = this.#listeners.get(threadId) ?? new Set()
    this.#listeners.set(threadId, own.add(listener))
    return () => {
      own.delete(listener)
      if (own.size === 0 && this.#listeners.get(threadId) === own) this.#listeners.delete(threadId)
    }
  }

  tell(threadId: string, events: readonly RuntimeEvent[]): void {
    const listeners = this.#listeners.get(threadId)
    if (!listeners) return
    for (const event of events)
      if (
        event.type === 'message_updated' ||
        event.type === 'message_removed' ||
        (event.type === 'message_queued' && event.ifBusy)
      )
        for (const listener of listeners) listener(event)
  }
}

/**
 * Creates the function that commits changes: it writes to the store, then publishes the events to readers,
 * then interrupts and wakes threads. Nothing is published before the store has accepted it.
 */
export function createCommit({
  store,
  live,
  dispatcher,
  outage,
  edits,
  node,
}: CommitParts): (commit: Commit) => Promise<CommitResult> {
  return async (commit) => {
    const result = await store.commit(commit)
    outage?.end()
    for (const [id, events] of appended(commit.threads, result)) live.publish(id, events)
    for (const { id, append = [], wake } of commit.threads) {
      // The running drain is interrupted first, because it is no longer needed; then the
      // thread is woken.
      if (append.some(({ type }) => type === 'thread_terminated'))
        dispatcher.interrupt(id, 'terminate')
      else if (append.some((event) => event.type === 'stop_requested' && !event.afterStep))
        dispatcher.interrupt(id, 'stop')
      edits.tell(id, append)
      const at = wake && ('by' in wake ? wake.by : wake.exactly)
      if (at !== undefined && at !== null) dispatcher.wake(id, at)
    }
    node?.committed(commit, result)
    return result
  }
}

/**
 * Returns the appended events of each thread with their sequence numbers. A commit may contain several changes
 * of one thread.
 */
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
  const byThread = new Map<string, readonly StoredEvent[]>()
  for (const [id, own] of events) {
    const first = (seqs.get(id) ?? own.length) - own.length + 1
    byThread.set(
      id,
      own.map((event, index) => ({ seq: first + index, event })),
    )
  }
  return byThread
}
