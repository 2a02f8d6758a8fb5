import type { Message } from '@skein/ai'
import type { JsonValue } from '@skein/base'
import type { FoldedThread, Thread as ThreadDocument } from '@skein/threads'
import type { AuditExport, AuditPage } from './audit-export.ts'
import type { CostReport } from './cost-report.ts'
import type { StoredEvent } from './event.ts'
import type { ModelLog, ModelLogDetail } from './model-log.ts'
import type {
  CreateThread,
  CreatedThread,
  ForkThread,
  ForkedThread,
  ThreadId,
} from './new-thread.ts'
import type { SendMessage, Sent } from './send-message.ts'
import type { SessionResult } from './session-result.ts'
import type { ThreadEffects, ThreadEnv, ThreadFiles, ThreadValues } from './thread-contents.ts'
import type { ThreadGrants } from './thread-grants.ts'
import type { ThreadInfo } from './thread-info.ts'
import type { MessageQuery, Side, StoredMessage, SubagentRegistryEntry } from './thread-state.ts'
import type { ThreadVariables } from './thread-variables.ts'
import type { ToolFailure } from './tool-failure.ts'
import type { WaitingItem } from './waiting-item.ts'
import type { ThreadHead } from '../store/head.ts'
import type { StoreTotals } from '../store/store.ts'
import type { ThreadQuery } from '../store/thread-query.ts'

/** The threads that have changed since the last page. */
interface ThreadChanges {
  /** The position after this page; pass it as `after` to continue. */
  readonly position: string
  /** Whether threads were removed, or this store does not know the position: list all threads again. */
  readonly isReset?: boolean
  /** The changed threads and the roots of their trees, each with what waits in it for a person. */
  readonly threads: readonly {
    readonly thread: ThreadInfo
    readonly waiting: readonly WaitingItem[]
  }[]
}

/** The operations on threads. */
export interface Threads {
  create<Data = JsonValue>(thread: CreateThread<Data>): Promise<CreatedThread<Data>>
  /** Returns a thread without its log; rejects with `THREAD_NOT_FOUND`. */
  get(threadId: string): Promise<ThreadInfo>
  /**
   * Returns the head of a thread as the store has it; rejects with `THREAD_NOT_FOUND`. Cheaper than `get`, which adds
   * sums over the descendants: enough to see whose thread it is.
   */
  head(threadId: string): Promise<ThreadHead>
  /**
   * Returns the owner's thread with the id that a client chose for it (`clientId`). Without `owner`, the oldest
   * thread of the tenant with this id, no matter who owns it.
   */
  byClientId(
    tenant: string,
    clientId: string,
    owner?: string | null,
  ): Promise<ThreadInfo | undefined>
  list(query?: ThreadQuery): Promise<readonly ThreadInfo[]>
  /**
   * Yields the threads of a tenant that have changed since a position, and then those that change later. A thread
   * that changes several times in between is yielded once, as it is then. Without `after`, only changes from now on
   * are yielded. Positions hold over restarts. A page without threads says that nothing more has changed.
   */
  changes(query?: {
    readonly tenant?: string
    readonly owner?: string
    readonly after?: string
    readonly signal?: AbortSignal
  }): AsyncIterable<ThreadChanges>
  /** Returns how many threads there are and what they have used. It takes equally long for any number of threads. */
  totals(): Promise<StoreTotals>
  update(
    threadId: string,
    change: { readonly title?: string; readonly tags?: readonly string[] },
  ): Promise<ThreadInfo>

  /** Queues a message; an idle thread starts a turn. */
  send(threadId: string, message: SendMessage | string): Promise<Sent>
  /**
   * Withdraws a message that is still queued; returns false if it is no longer in the queue. A message of the parent
   * cannot be withdrawn (`INPUT_INVALID`).
   */
  unsend(threadId: string, queueId: string): Promise<boolean>
  /**
   * Sends a message and waits until the session ends or waits for a person. `data` has the type of the agent's `output`
   * if the thread was created with the agent's definition: `threads.create({ agent: support })`.
   */
  run<Data = JsonValue>(
    threadId: ThreadId<Data>,
    message: SendMessage | string,
    options?: { readonly signal?: AbortSignal },
  ): Promise<SessionResult<Data>>
  /** Waits until the thread is at rest or needs a person. */
  settled(threadId: string, options?: { readonly signal?: AbortSignal }): Promise<SessionResult>

  stop(
    threadId: string,
    options?: { readonly by?: string; readonly afterStep?: boolean },
  ): Promise<void>
  resume(threadId: string, options?: { readonly by?: string; readonly side?: Side }): Promise<void>
  /**
   * Terminates the thread and, without `detach`, all its descendants: running work is aborted, and no more
   * messages are accepted. Idempotent.
   */
  terminate(
    threadId: string,
    options?: { readonly by?: string; readonly detach?: boolean },
  ): Promise<void>
  /** Erases the contents of a thread and its descendants. Times, agents, costs and the audit log are kept. */
  erase(threadId: string, options?: { readonly by?: string }): Promise<void>
  /** Terminates and removes a thread and all its descendants. */
  remove(threadId: string): Promise<void>

  messages(threadId: string, query?: MessageQuery): Promise<readonly StoredMessage[]>
  updateMessage(threadId: string, messageId: string, content: string | Message): Promise<void>
  deleteMessage(threadId: string, messageId: string): Promise<void>
  /**
   * Returns the children in the form of the Standard Agents specification; `createdAt` is in microseconds. With
   * `includesEnded`, also children that have ended and can no longer be reached.
   */
  children(
    threadId: string,
    options?: { readonly includesEnded?: boolean },
  ): Promise<readonly SubagentRegistryEntry[]>

  events(
    threadId: string,
    options?: { readonly after?: number; readonly limit?: number },
  ): Promise<readonly StoredEvent[]>
  /** Returns the state that `@skein/threads` computes from the log. */
  folded(threadId: string): Promise<FoldedThread>
  /** Returns the thread as a ThreadProtocol document. */
  document(threadId: string): Promise<ThreadDocument>
  /** Returns the log as JSON lines, without secrets; `import` reads them. */
  export(threadId: string): Promise<string>
  /** Yields the same lines in parts, so that a long log need not fit in memory. */
  exportLines(threadId: string): AsyncIterable<string>
  import(
    lines: string,
    options?: { readonly tenant?: string; readonly owner?: string },
  ): Promise<ThreadInfo>
  /**
   * Creates a new thread with the history up to and including a message, or before one. No call of that history
   * runs again. With `message` or `isContinued` the new thread continues immediately.
   */
  fork(threadId: string, options?: ForkThread): Promise<ForkedThread>

  readonly files: ThreadFiles
  readonly values: ThreadValues
  readonly env: ThreadEnv
  readonly variables: ThreadVariables
  readonly effects: ThreadEffects
  readonly grants: ThreadGrants

  logs(threadId: string): Promise<readonly ModelLog[]>
  /** Returns what the code of tools threw in the thread, with stacks. Only for operators: events do not show it. */
  failures(threadId: string): Promise<readonly ToolFailure[]>
  log(threadId: string, logId: string): Promise<ModelLogDetail>
  cost(threadId: string): Promise<CostReport>
  /** Returns the audit log of a root thread: its lines and a signed checkpoint, for `verifyLog`. */
  audit(threadId: string): Promise<AuditExport>
  /** Returns a page of the audit log: 500 lines by default, at most 5000. */
  auditPage(
    threadId: string,
    page?: { readonly cursor?: string; readonly limit?: number },
  ): Promise<AuditPage>
}
