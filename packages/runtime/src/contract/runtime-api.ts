import type { Inbox } from './inbox.ts'
import type { OperatorLimits } from './operator-limits.ts'
import type { NumberedEvent, SubscribeOptions } from './subscription.ts'
import type { ThreadInfo } from './thread-info.ts'
import type { ThreadState } from './thread-state.ts'
import type { Threads } from './threads.ts'
import type { UserValues } from './user-values.ts'
import type { Registry } from '../definitions/resolved.ts'
import type { RuntimeNode } from '../nodes/nodes.ts'

/** The runtime as a program uses it directly. The HTTP server and the command line use this interface too. */
export interface Runtime {
  readonly registry: Registry
  readonly threads: Threads
  /** The calls that wait for a person or a client, in all threads. */
  readonly inbox: Inbox
  readonly limits: OperatorLimits
  readonly users: {
    /** The values of users, which tools see as `state.user`. */
    readonly values: UserValues
  }
  /** The connection to the other nodes, if there are any; servers use it. */
  readonly node?: RuntimeNode | undefined
  /** Aborts when `stop` is called, so that servers end their streams. */
  readonly stopping?: AbortSignal
  /** Starts the work on threads, also on those that a crash or a stop interrupted. */
  start(): Promise<void>
  /** Ends the work on threads, which continue after the next start, and closes the store. */
  stop(options?: { readonly graceMs?: number }): Promise<void>
  /** Resolves when no thread is running or due; for tests and commands. */
  idle(): Promise<void>
  /**
   * Returns the events of a thread with their numbers: first those after `after`, then live ones until the
   * signal aborts or the thread is removed.
   */
  subscribe(threadId: string, options?: SubscribeOptions): AsyncIterable<NumberedEvent>
  /**
   * Calls `work` with the state of a thread, as endpoints get it. The changes are committed when `work`
   * returns and dropped when it throws. If another writer has set a value that `work` read, `work` is called
   * again with the state as it is then, like a transaction of a database; with `isRepeatable: false`, and
   * after `emit` or `setStatus`, the promise rejects with `STATE_CONFLICT` instead.
   */
  withState<T>(
    threadId: string,
    work: (state: ThreadState) => T | Promise<T>,
    options?: { readonly isRepeatable?: boolean },
  ): Promise<T>
  /**
   * Returns new, changed and removed threads as they change, for programs that show a list of
   * threads.
   */
  changes(options?: { readonly signal?: AbortSignal }): AsyncIterable<ThreadInfo>
}
