import type { JsonObject, JsonValue } from '@skein/base'
import type { Message, UserContent } from '@skein/ai'
import type { Answer } from '@skein/agents'
import type { ApprovalRequest, Risk } from '@skein/governance'
import type { PublicJwk } from '@skein/governance/approvals'
import type {
  Thread as ThreadDocument,
  ThreadEvent,
  ThreadState as FoldedThread,
} from '@skein/threads'
import type { Budget } from './definitions/types.ts'
import type { Registry } from './definitions/resolved.ts'
import type { RuntimeEvent, SessionOutcome, StoredEvent } from './event.ts'
import type { ThreadHead, ThreadQuery } from './store/store.ts'
import type {
  EffectSchedule,
  FileStat,
  MessageQuery,
  ScheduledEffect,
  Side,
  StoredMessage,
  SubagentRegistryEntry,
  ThreadState,
} from './thread-state.ts'

/** The runtime, embedded: everything that HTTP and the command do goes through here. */
export interface Runtime {
  readonly registry: Registry
  readonly threads: Threads
  /** Everything that waits for a person, over all threads and depths. */
  readonly inbox: Inbox
  /** Takes up what a crash or a stop left, and begins to work. */
  start(): Promise<void>
  /** Parks what runs and closes the store. */
  stop(options?: { readonly graceMs?: number }): Promise<void>
  /** Resolves when nothing runs and nothing is due: for tests and commands. */
  idle(): Promise<void>
  /** Numbered events of a thread, from a number on, then live until the signal aborts or the thread is removed. */
  subscribe(threadId: string, options?: SubscribeOptions): AsyncIterable<NumberedEvent>
  /** Gives code the state of a thread, as endpoints get it. What it changed is committed when it returns, nothing when it throws. */
  withState<T>(threadId: string, work: (state: ThreadState) => T | Promise<T>): Promise<T>
  /** New, changed and removed threads, as they happen; for lists. */
  changes(options?: { readonly signal?: AbortSignal }): AsyncIterable<ThreadHead>
}

/** Where a subscription begins and when it ends. */
export interface SubscribeOptions {
  /** Id of the last event the reader has; absent or `0` begins at the first. */
  readonly after?: string
  readonly signal?: AbortSignal
  /** Deltas of running steps. Default true. */
  readonly includesDeltas?: boolean
  /** Ends when nothing runs any more and everything was given. Default false. */
  readonly untilParked?: boolean
}

/**
 * An event with its number. Events of the log have whole numbers (`12`); what only matters while it
 * happens is numbered after the event before it (`12.3`). A reader that comes back with `12.3` gets what
 * followed, or, if that step is over, the log after 12. So an event of the log that comes in the middle of
 * a speech carries a fraction too (`13.3`): the log up to 13, and three pieces of the speech.
 */
export interface NumberedEvent {
  readonly id: string
  readonly event: RuntimeEvent | ThreadEvent
}

/** A thread to create. */
export interface CreateThread {
  readonly agent: string
  readonly tenant?: string
  readonly owner?: string
  readonly title?: string
  readonly tags?: readonly string[]
  /** An id of the client's choosing, unique within the tenant. */
  readonly clientId?: string
  readonly env?: Readonly<Record<string, string>>
  readonly secrets?: Readonly<Record<string, string>>
  readonly values?: Readonly<Record<string, JsonValue>>
  readonly metadata?: JsonObject
  readonly budget?: Budget
  /** Queued at once. */
  readonly message?: SendMessage | string
}

/** A message to send to a thread. */
export interface SendMessage {
  readonly text?: string
  readonly content?: readonly UserContent[]
  /** `user` (default) speaks to side A, `assistant` to side B. */
  readonly role?: 'user' | 'assistant'
  readonly isSilent?: boolean
  /** Paths of files of the thread. */
  readonly attachments?: readonly string[]
  readonly userId?: string
  readonly metadata?: JsonObject
  /** Sending twice with one id queues once. */
  readonly messageId?: string
}

/** A message that was queued. */
export interface Sent {
  readonly queueId: string
  readonly messageId: string
  /** Number of the event, to subscribe from. */
  readonly seq: number
}

/** How a session ended, for callers that wait. */
export interface SessionResult {
  readonly outcome: SessionOutcome | 'waiting'
  readonly reason: string
  readonly text: string
  readonly data?: JsonValue
  readonly attachments: readonly string[]
  readonly waiting: readonly WaitingItem[]
  readonly thread: ThreadHead
}

/** Something that waits for a person or a client. */
export interface WaitingItem {
  readonly threadId: string
  readonly rootId: string
  readonly interruptId: string
  readonly toolCallId: string
  readonly toolName: string
  readonly arguments: JsonValue
  readonly kind: 'approval' | 'input'
  /** Agents from the root thread down to this one. */
  readonly path: readonly string[]
  readonly openedAt: string
  readonly expiresAt?: string
  readonly risk?: Risk
  /** What has to be signed; for approvals. */
  readonly request?: ApprovalRequest
  readonly question?: JsonValue
}

/** What a person decided about a waiting call. */
export interface Decision {
  readonly threadId: string
  readonly interruptId: string
  /** The authenticated person. */
  readonly by: string
  readonly reason?: string
  /** Tokens signed elsewhere; without them the runtime signs for `by`. */
  readonly tokens?: readonly string[]
}

/** What waits for people and clients, over all threads. */
export interface Inbox {
  list(
    query?: Pick<ThreadQuery, 'tenant' | 'owner' | 'rootId' | 'limit'>,
  ): Promise<readonly WaitingItem[]>
  /** The first decision counts; later ones are refused with `ALREADY_ANSWERED`. */
  approve(decision: Decision): Promise<void>
  deny(decision: Decision & { readonly reason: string }): Promise<void>
  /** Answers a tool that runs at the client, or any other question. */
  answer(
    item: { readonly threadId: string; readonly interruptId: string; readonly by?: string },
    answer: Extract<Answer, { type: 'result' | 'error' }>,
  ): Promise<void>
}

/** One model request of a thread and what came of it. */
export interface ModelLog {
  readonly logId: string
  readonly stepId: string
  readonly at: string
  readonly side: Side
  readonly prompt: string
  readonly provider: string
  readonly model: string
  readonly attempt: number
  readonly durationMs?: number
  readonly firstTokenMs?: number
  readonly finishReason?: string
  readonly usage?: JsonObject
  readonly costUsd?: number
  readonly error?: { readonly code: string; readonly message: string }
}

/** A request as it was sent, put together again. Secrets are never in it. */
export interface ModelLogDetail extends ModelLog {
  readonly system: string | null
  readonly tools: readonly JsonObject[]
  readonly params: JsonObject
  /** The shape that was asked for. */
  readonly structure?: JsonObject
  readonly messages: readonly JsonObject[]
  readonly messageId?: string
}

/** What a thread and its descendants have spent. */
export interface CostReport {
  readonly threadId: string
  readonly tokens: number
  readonly costUsd: number
  readonly byModel: Readonly<
    Record<string, { readonly tokens: number; readonly costUsd: number; readonly calls: number }>
  >
  readonly byThread: Readonly<
    Record<string, { readonly agent: string; readonly tokens: number; readonly costUsd: number }>
  >
}

/** Everything that can be done with threads. */
export interface Threads {
  create(thread: CreateThread): Promise<ThreadHead>
  /** Rejects with `THREAD_NOT_FOUND`. */
  get(threadId: string): Promise<ThreadHead>
  byClientId(tenant: string, clientId: string): Promise<ThreadHead | undefined>
  list(query?: ThreadQuery): Promise<readonly ThreadHead[]>
  update(
    threadId: string,
    change: { readonly title?: string; readonly tags?: readonly string[] },
  ): Promise<ThreadHead>

  /** Queues a message; a thread that does nothing starts a turn. */
  send(threadId: string, message: SendMessage | string): Promise<Sent>
  /** Takes back a message that still waits. */
  unsend(threadId: string, queueId: string): Promise<boolean>
  /** Sends and waits until the session ends or waits for a person. */
  run(
    threadId: string,
    message: SendMessage | string,
    options?: { readonly signal?: AbortSignal },
  ): Promise<SessionResult>
  /** Waits until the thread is parked. */
  settled(threadId: string, options?: { readonly signal?: AbortSignal }): Promise<SessionResult>

  stop(
    threadId: string,
    options?: { readonly by?: string; readonly afterStep?: boolean },
  ): Promise<void>
  resume(threadId: string, options?: { readonly by?: string; readonly side?: Side }): Promise<void>
  /** Aborts what runs, here and in all descendants; nothing can be sent any more. Idempotent. */
  terminate(
    threadId: string,
    options?: { readonly by?: string; readonly detach?: boolean },
  ): Promise<void>
  /** Removes the contents, keeps the skeleton and the audit log. */
  erase(threadId: string, options?: { readonly by?: string }): Promise<void>
  /** Terminates and removes a thread and all its descendants. */
  remove(threadId: string): Promise<void>

  messages(threadId: string, query?: MessageQuery): Promise<readonly StoredMessage[]>
  updateMessage(threadId: string, messageId: string, content: string | Message): Promise<void>
  deleteMessage(threadId: string, messageId: string): Promise<void>
  children(threadId: string): Promise<readonly SubagentRegistryEntry[]>

  events(
    threadId: string,
    options?: { readonly after?: number; readonly limit?: number },
  ): Promise<readonly StoredEvent[]>
  /** The fold of `@skein/threads` over the log. */
  folded(threadId: string): Promise<FoldedThread>
  /** The thread as a ThreadProtocol document. */
  document(threadId: string): Promise<ThreadDocument>
  /** The log as JSON lines, without secrets; `import` reads it. */
  export(threadId: string): Promise<string>
  import(
    lines: string,
    options?: { readonly tenant?: string; readonly owner?: string },
  ): Promise<ThreadHead>
  /** A new thread with the history up to and with a message; nothing of it runs again. */
  fork(
    threadId: string,
    options?: { readonly upTo?: string; readonly owner?: string; readonly title?: string },
  ): Promise<ThreadHead>

  readonly files: ThreadFiles
  readonly values: ThreadValues
  readonly env: ThreadEnv
  readonly variables: ThreadVariables
  readonly effects: ThreadEffects

  logs(threadId: string): Promise<readonly ModelLog[]>
  log(threadId: string, logId: string): Promise<ModelLogDetail>
  cost(threadId: string): Promise<CostReport>
  /** The audit log of a root thread: lines with a signed checkpoint, for `verifyLog`. */
  audit(threadId: string): Promise<AuditExport>
}

/** The audit log of a tree of threads, with what is needed to verify it. */
export interface AuditExport {
  readonly tree: string
  readonly lines: readonly string[]
  readonly checkpoint: string
  /** The verifier's key, as `verifyLog` takes it. */
  readonly publicKey: PublicJwk
}

/** The files of a thread. */
export interface ThreadFiles {
  list(threadId: string, prefix?: string): Promise<readonly FileStat[]>
  stat(threadId: string, path: string): Promise<FileStat | undefined>
  read(
    threadId: string,
    path: string,
  ): Promise<{ readonly stat: FileStat; readonly bytes: Uint8Array }>
  write(
    threadId: string,
    path: string,
    bytes: Uint8Array,
    options?: { readonly mediaType?: string; readonly by?: string },
  ): Promise<FileStat>
  remove(threadId: string, path: string): Promise<boolean>
  move(threadId: string, from: string, to: string): Promise<FileStat>
}

/** The values of a thread. */
export interface ThreadValues {
  list(threadId: string, prefix?: string): Promise<Readonly<Record<string, JsonValue>>>
  get(threadId: string, key: string): Promise<JsonValue | undefined>
  set(threadId: string, key: string, value: JsonValue | null): Promise<void>
}

/** The variables of a thread. Secrets can be set but not read. */
export interface ThreadEnv {
  /** Names and types; values of text variables only. */
  list(
    threadId: string,
  ): Promise<
    readonly { readonly name: string; readonly type: 'text' | 'secret'; readonly value?: string }[]
  >
  set(
    threadId: string,
    name: string,
    value: string | null,
    options?: { readonly type?: 'text' | 'secret' },
  ): Promise<void>
}

/** A child that waits for variables. */
export interface VariablesRequest {
  readonly requestId: string
  readonly required: readonly string[]
  readonly missing: readonly string[]
  readonly expiresAt: string
  readonly status: 'open' | 'provided' | 'expired'
}

/** Requests for variables of children that could not be created yet. */
export interface ThreadVariables {
  get(threadId: string, requestId: string): Promise<VariablesRequest>
  /** Stores the values and boots the deferred child with its original payload. Once. */
  provide(
    threadId: string,
    requestId: string,
    values: Readonly<Record<string, string>>,
    options?: { readonly by?: string },
  ): Promise<{ readonly reference: string }>
}

/** The scheduled effects of a thread. */
export interface ThreadEffects {
  list(threadId: string): Promise<readonly ScheduledEffect[]>
  schedule(
    threadId: string,
    name: string,
    args: JsonValue,
    when: number | EffectSchedule,
  ): Promise<string>
  /** Runs it now instead of later. */
  runNow(threadId: string, effectId: string): Promise<void>
  remove(threadId: string, effectId: string): Promise<boolean>
}
