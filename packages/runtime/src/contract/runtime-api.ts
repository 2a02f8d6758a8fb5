import type { Answer } from '@skein/agents'
import type { Message, UserContent } from '@skein/ai'
import type { JsonObject, JsonValue } from '@skein/base'
import type { ApprovalRequest, Risk } from '@skein/governance'
import type { PublicJwk } from '@skein/governance/approvals'
import type { Thread as ThreadDocument, FoldedThread, InterruptAnswer } from '@skein/threads'
import type { FailureCause, SessionOutcome, StoredEvent } from './event.ts'
import type { SubscribeOptions, NumberedEvent } from './subscription.ts'
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
import type { Registry } from '../definitions/resolved.ts'
import type { AgentDefinition, Budget } from '../definitions/types.ts'
import type { RuntimeNode } from '../nodes/nodes.ts'
import type {
  StoreTotals,
  ThreadHead,
  ThreadQuery,
  UserOf,
  UserValue,
  WaitingQuery,
} from '../store/store.ts'

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
  /** The connection to the other nodes (processes that share the store), if there are any; servers use it. */
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

/**
 * How much the tenants or the users of a runtime may spend on models in a period. All limits of a rule apply.
 * A rule without `tenants` is for the tenants that no other rule with the same `per` and `periodMs` names.
 */
export interface SpendingRule {
  readonly per: 'tenant' | 'user'
  /** The length of a period. Periods begin at multiples of it since 1970, so days begin at midnight UTC. */
  readonly periodMs: number
  readonly maxCostUsd?: number
  readonly maxTokens?: number
  /** Requests to models. */
  readonly maxInferences?: number
  readonly tenants?: readonly string[]
  /**
   * What happens to new messages after the limit is reached: `refuse` rejects them with `SPENDING_LIMIT`,
   * `queue` accepts them, and the thread waits for the next period. Default `refuse`.
   */
  readonly newMessages?: 'refuse' | 'queue'
}

/**
 * Which root threads are erased or removed, together with their descendants. Threads that work or have
 * messages in their queue always stay.
 */
export interface RetentionRule {
  /** The time since the last event after which a thread is erased or removed. */
  readonly maxAgeMs?: number
  /** How many root threads each tenant may have; those that were active last are kept. */
  readonly maxThreads?: number
  readonly tenants?: readonly string[]
  readonly agents?: readonly string[]
  /** `erase` keeps times, agents and costs; `remove` keeps nothing. Default `erase`. */
  readonly action?: 'erase' | 'remove'
  /** Also applies to threads that wait for a person, client or spending period, or that have scheduled effects. */
  readonly includes?: readonly ('waiting' | 'scheduled')[]
}

/** What was spent, delayed, refused and removed under the operator's limits. */
export interface LimitsReport {
  /** One entry for each tenant or user that has spent something in the current or the last period. */
  readonly spending: readonly {
    readonly per: 'tenant' | 'user'
    readonly tenant: string
    readonly user?: string
    readonly from: string
    readonly until: string
    readonly spent: SpentAmounts
    /** The most that requests to models may cost which run now, or which ran when their process died. */
    readonly reserved: SpentAmounts
    readonly max: Partial<SpentAmounts>
    /** Messages that were refused. */
    readonly refused: number
    /** Inferences that had to wait. */
    readonly delayed: number
  }[]
  readonly retention: readonly {
    readonly tenant: string
    readonly erased: number
    readonly removed: number
    /** Threads that a rule would have erased or removed, but that were working. */
    readonly kept: number
    readonly failed: number
  }[]
}

interface SpentAmounts {
  readonly costUsd: number
  readonly tokens: number
  readonly inferences: number
}

/** The limits that the operator has set with `spending` and `retention`. */
export interface OperatorLimits {
  /** Returns what was spent, refused and removed, of one tenant or of all. */
  report(options?: { readonly tenant?: string }): Promise<LimitsReport>
  /** Returns counts since the store was created, by name, e.g. `refused`: how many messages were refused. */
  totals(): Promise<ReadonlyMap<string, number>>
  /** Applies the retention rules now, without waiting for their next regular time. */
  sweep(): Promise<void>
}

/**
 * The cost of model requests in US dollars. Null when the cost of any of them is unknown, because a sum of the
 * others would be too low; `threads.cost` shows which models have no price.
 */
export type CostUsd = number | null

/** A thread as the API shows it. Times are ISO 8601 texts in UTC. */
export interface ThreadInfo extends Omit<
  ThreadHead,
  | 'costUsd'
  | 'unpriced'
  | 'createdAt'
  | 'updatedAt'
  | 'wakeAt'
  | 'lease'
  | 'logId'
  | 'change'
  | 'tools'
  | 'grantedUntil'
> {
  /** The cost of the thread itself, without its descendants. */
  readonly costUsd: CostUsd
  readonly createdAt: string
  /** The time of the last event. */
  readonly updatedAt: string
  /** When the thread works next; null while it waits for a message or an answer. */
  readonly wakeAt: string | null
  /** The part of `tokens` that models have read as input. */
  readonly inputTokens: number
  /** Sums over the thread and all its descendants; `waiting` counts what waits for a person or a client. */
  readonly tree: { readonly tokens: number; readonly costUsd: CostUsd; readonly waiting: number }
}

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

/** A thread to create. */
export interface CreateThread<Data = unknown> {
  /** The name of the agent, or its definition, from which the type of `data` in the results of `run` follows. */
  readonly agent: string | AgentDefinition<Data>
  readonly tenant?: string
  readonly owner?: string
  readonly title?: string
  readonly tags?: readonly string[]
  /** An id that the client chose; no other thread of the same tenant and owner may have it. */
  readonly clientId?: string
  readonly env?: Readonly<Record<string, string>>
  readonly secrets?: Readonly<Record<string, string>>
  readonly values?: Readonly<Record<string, JsonValue>>
  readonly metadata?: JsonObject
  readonly budget?: Budget
  /** A first message, which is queued at once. */
  readonly message?: SendMessage | string
}

/** Where a thread is forked, and how the fork goes on. */
export interface ForkThread {
  /** The last message of the fork. Default: the last message of the thread. */
  readonly upTo?: string
  /** In place of `upTo`: the first message that the fork does not have, e.g. because `message` replaces it. */
  readonly before?: string
  readonly owner?: string
  readonly title?: string
  /** A message that is sent to the fork at once. */
  readonly message?: SendMessage | string
  /** Whether the fork goes on without a message, so that its last message is answered again. Default false. */
  readonly isContinued?: boolean
}

/** A fork, and what the original thread did after the point of the fork, which the fork may do again. */
export interface ForkedThread extends ThreadInfo {
  readonly runsAgain: {
    readonly modelCalls: number
    readonly children: number
    readonly calls: readonly {
      readonly toolName: string
      readonly count: number
      readonly risk?: Risk
    }[]
  }
}

/**
 * What a message does to a thread that is busy: in a session (also one that waits), or with messages in its
 * queue. `enqueue`: it waits for the next step. `reject`: it is refused with `THREAD_BUSY`. `cut`: the running
 * turn ends, what it said stays, and the next turn answers the message. `restart`: as `cut`, and models are no
 * longer shown what was said since the last answer.
 */
export const IF_BUSY = ['enqueue', 'reject', 'cut', 'restart'] as const

/** A message to send to a thread. */
export interface SendMessage {
  readonly text?: string
  readonly content?: readonly UserContent[]
  /** Who gets the message: for `user` (default) the agent (side A), for `assistant` the person or second agent. */
  readonly role?: 'user' | 'assistant'
  readonly isSilent?: boolean
  /** Paths of files of the thread. */
  readonly attachments?: readonly string[]
  readonly userId?: string
  /** May not contain `from`, `kind` and `for`, with which the runtime marks its own messages. */
  readonly metadata?: JsonObject
  /** If two messages are sent with the same id, only the first is queued. */
  readonly messageId?: string
  /** The name of another model of the registry, which answers for the agent (side A) until the next message. */
  readonly model?: string
  /** Settings of the model that answers, until the next message; they override the agent's `providerOptions`. */
  readonly settings?: JsonObject
  /**
   * A call of a tool of the agent (side A), which is made in place of asking a model. It is judged by the policy
   * as any other call, and the session ends with its result.
   */
  readonly call?: { readonly toolName: string; readonly arguments: JsonObject }
  /** What happens if the thread is busy (see `IF_BUSY`). Default `enqueue`. */
  readonly ifBusy?: (typeof IF_BUSY)[number]
}

/** A message that was queued. */
export interface Sent {
  readonly queueId: string
  readonly messageId: string
  /** Number of the event that queued the message; a subscription can begin after it. */
  readonly seq: number
}

/** The id of a thread. `Data` is the type of the data that the sessions of its agent return. */
export type ThreadId<Data = unknown> = string & { readonly '~data'?: Data }

/** A thread that was just created. */
export interface CreatedThread<Data = unknown> extends ThreadInfo {
  readonly id: ThreadId<Data>
}

/** How a session ended, for callers that wait for its end. */
export interface SessionResult<Data = JsonValue> {
  readonly outcome: SessionOutcome | 'waiting'
  readonly reason: string
  readonly text: string
  /** What to do about a failure. */
  readonly hint?: string
  /** The answer, checked by the `output` of the agent that gave it; absent if there is none. */
  readonly data?: Data
  readonly attachments: readonly string[]
  readonly waiting: readonly WaitingItem[]
  readonly thread: ThreadInfo
}

/**
 * A call or a scheduled effect that waits for a person, a call that waits for a client, or a child that cannot be
 * created until a person has given it variables.
 */
export interface WaitingItem {
  readonly threadId: string
  readonly rootId: string
  /** The id of the question; for `variables` the id of the request (`threads.variables.provide` answers it). */
  readonly interruptId: string
  /** The id of the call; where no call waits, the id of the scheduled effect or of the request for variables. */
  readonly toolCallId: string
  /** The name of the tool, or of the scheduled effect. */
  readonly toolName: string
  /** The arguments with which the call runs: as the tool has parsed them, with defaults and transforms. */
  readonly arguments: JsonValue
  /** What the model sent, if the tool has made other arguments of it. */
  readonly sentArguments?: JsonValue
  /**
   * `in_doubt`: a process died during the call, and a person has to find out whether it had its effect. `variables`: a
   * child needs values that only a person has.
   */
  readonly kind: 'approval' | 'input' | 'in_doubt' | 'variables'
  /** Set when a scheduled effect waits instead of a call. */
  readonly effectId?: string
  /** Names of the agents from the root thread down to this thread. */
  readonly path: readonly string[]
  readonly openedAt: string
  readonly expiresAt?: string
  readonly risk?: Risk
  /** For approvals: whether the call, once it has run, cannot be undone. */
  readonly isIrreversible?: boolean
  /** For approvals: the request that has to be signed. */
  readonly request?: ApprovalRequest
  readonly question?: JsonValue
  /** For `variables`: the missing variables. Their values are never part of an item. */
  readonly variables?: readonly WantedVariable[]
}

/** A variable that a child needs. */
export interface WantedVariable {
  readonly name: string
  /** A secret is stored encrypted and never shown again. */
  readonly type: 'text' | 'secret'
  readonly description?: string
}

/** Something that waits or has waited for a person, with all that one needs to decide or to understand it. */
export interface WaitingDetail extends WaitingItem {
  /** `over`: it ended without an answer, because the thread was stopped or terminated, or because it expired. */
  readonly status: 'waiting' | 'decided' | 'over'
  /** What the person is asked, in one sentence that is safe to show. */
  readonly sentence: string
  /** How the call would be undone; null if there is no way, or nothing to undo. */
  readonly undo: JsonValue
  /** The evidence (recorded facts) that the thread had when it asked the person, the latest last. */
  readonly evidence: readonly {
    readonly evidenceId: string
    readonly kind: string
    readonly at: string
    readonly summary?: string
    readonly toolCallId?: string
  }[]
  /** Who has approved so far, where several people have to. */
  readonly approvedBy: readonly { readonly by: string; readonly at: string }[]
  readonly decision?: {
    readonly type: InterruptAnswer['type'] | 'provided'
    readonly at: string
    readonly by?: string
    readonly reason?: string
    /** The call with other arguments that the person approved in place of this one. */
    readonly changedTo?: string
  }
}

/** A person's decision about a waiting call. */
export interface ApprovalDecision {
  readonly threadId: string
  readonly interruptId: string
  /** The authenticated person. */
  readonly by: string
  readonly reason?: string
  /** Approval tokens that were signed elsewhere; without them the runtime signs in the name of `by`. */
  readonly tokens?: readonly string[]
  /**
   * The digest (hash) of the request that the person has seen (`request.digest` of the waiting item). If the call
   * that waits has another digest, nothing is recorded.
   */
  readonly digest?: string
  /**
   * For `approve`: the arguments with which the person approves the call, in the form in which a model sends them (the
   * `parameters` of the tool): the tool parses them in the same way. If the result differs from the arguments of the
   * call, the call is denied, and another call with these arguments, its own id and its own approval takes its place.
   */
  readonly with?: JsonObject
  /**
   * For `approve`: for how long a standing grant holds that is made together with the approval. The tool then needs no
   * further approval in this thread; see `ThreadGrants`.
   */
  readonly grantForMs?: number
}

/** The answers to the question whether a call that a crash interrupted had its effect. */
export const FOUND_EFFECTS = ['applied', 'absent', 'unknown'] as const

/** What a person found out about a call that a crash interrupted. */
export type FoundEffect = (typeof FOUND_EFFECTS)[number]

/** Selects what waits. Absent conditions do not filter. */
export type WaitingSelection = Pick<
  WaitingQuery,
  'tenant' | 'owner' | 'agent' | 'kind' | 'rootId' | 'threadId' | 'threadIdPart' | 'interruptIdPart'
>

/** A page of what waits. A page may have fewer items than its limit, also when others follow. */
export interface WaitingPage {
  readonly waiting: readonly WaitingItem[]
  /** The cursor of the next page; absent after the last page. */
  readonly nextCursor?: string
}

/** The calls that wait for a person or a client, over all threads. */
export interface Inbox {
  /** Returns everything that waits, the oldest first, or the first `limit` items. */
  list(query?: WaitingSelection & { readonly limit?: number }): Promise<readonly WaitingItem[]>
  /** Returns a page of what waits, the oldest first: 100 items by default, at most 1000. */
  page(
    query?: WaitingSelection & { readonly limit?: number; readonly cursor?: string },
  ): Promise<WaitingPage>
  /** Returns one item, also after it was decided. Rejects with `INTERRUPT_NOT_FOUND`. */
  get(item: { readonly threadId: string; readonly interruptId: string }): Promise<WaitingDetail>
  /** Approves a call. Only the first decision is used; later ones are refused with `ALREADY_ANSWERED`. */
  approve(decision: ApprovalDecision): Promise<void>
  deny(decision: Omit<ApprovalDecision, 'with'> & { readonly reason: string }): Promise<void>
  /**
   * Records what a person found out about a call in doubt (a process died during it): it had its effect, it had
   * none, or nobody knows. After `absent` a high-risk call waits for a new approval before it runs again. Give this
   * right only to those who may approve.
   */
  settle(
    item: { readonly threadId: string; readonly interruptId: string; readonly by: string },
    found: FoundEffect,
  ): Promise<void>
  /** Answers a call of a tool that runs at the client, or any other question of a tool. */
  answer(
    item: { readonly threadId: string; readonly interruptId: string; readonly by?: string },
    answer: Extract<Answer, { type: 'result' | 'error' }>,
  ): Promise<void>
}

/** One model request of a thread, with its answer or failure. */
export interface ModelLog {
  readonly logId: string
  readonly stepId: string
  readonly at: string
  readonly side: Side
  readonly prompt: string
  /** The call that made the request, where a prompt is used as a tool; absent for an agent's own requests. */
  readonly toolCallId?: string
  readonly provider: string
  readonly model: string
  readonly attempt: number
  readonly durationMs?: number
  readonly firstTokenMs?: number
  readonly finishReason?: string
  readonly usage?: JsonObject
  /** Absent until the request was answered; null when the price of the model is unknown. */
  readonly costUsd?: CostUsd
  readonly error?: { readonly code: string; readonly message: string; readonly hint?: string }
}

/** What the code of a tool threw, without secrets. */
export interface ToolFailure extends FailureCause {
  readonly toolCallId: string
  readonly toolName: string
  readonly at: string
}

/** A model request as it was sent, rebuilt from the log. It never contains secrets. */
export interface ModelLogDetail extends ModelLog {
  readonly system: string | null
  readonly tools: readonly JsonObject[]
  readonly params: JsonObject
  /** The JSON Schema that the answer had to follow. */
  readonly structure?: JsonObject
  readonly messages: readonly JsonObject[]
  readonly messageId?: string
}

/** The tokens and US dollars that a thread and its descendants have spent. */
export interface CostReport {
  readonly threadId: string
  readonly tokens: number
  readonly costUsd: CostUsd
  readonly byModel: Readonly<
    Record<string, { readonly tokens: number; readonly costUsd: CostUsd; readonly calls: number }>
  >
  readonly byThread: Readonly<
    Record<string, { readonly agent: string; readonly tokens: number; readonly costUsd: CostUsd }>
  >
}

/** A child in its parent's list, in the form that clients get: `createdAt` is ISO 8601 text. */
export type ChildInfo = Omit<SubagentRegistryEntry, 'createdAt'> & {
  readonly createdAt?: string
  /** The thread of the child, with its state, tokens, cost and times; null if it was removed. */
  readonly thread: ThreadInfo | null
}

/** The operations on threads. */
export interface Threads {
  create<Data = JsonValue>(thread: CreateThread<Data>): Promise<CreatedThread<Data>>
  /** Returns a thread without its log; rejects with `THREAD_NOT_FOUND`. */
  get(threadId: string): Promise<ThreadInfo>
  /**
   * Returns the owner's thread with the id that a client chose for it (`clientId`). Without `owner`, the oldest
   * thread of the tenant with this id, whoever owns it.
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
   * runs again. With `message` or `isContinued` the new thread goes on at once.
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

/** The audit log of a tree of threads, with the data that is needed to verify it. */
export interface AuditExport {
  readonly tree: string
  readonly lines: readonly string[]
  readonly checkpoint: string
  /** The public key that verifies the checkpoint, in the form that `verifyLog` accepts. */
  readonly publicKey: PublicJwk
}

/**
 * A page of an audit log. The lines of all pages in order, with the checkpoint and the key of the last page, are
 * the whole export (`AuditExport`).
 */
export interface AuditPage extends Omit<AuditExport, 'checkpoint'> {
  /** The index of the first line. */
  readonly from: number
  /** The cursor of the next page; absent on the last page. */
  readonly nextCursor?: string
  /** The signed checkpoint of the whole log up to the last line; only on the last page. */
  readonly checkpoint?: string
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

/**
 * The values of users. They belong to a user of a tenant and to no thread, so erasing a thread keeps them and
 * erasing the user removes them.
 */
export interface UserValues {
  /** Returns the values with their versions, by key; without a prefix all of them, e.g. to export them. */
  list(of: UserOf, prefix?: string): Promise<readonly UserValue[]>
  get(of: UserOf, key: string): Promise<UserValue | undefined>
  /**
   * Sets a value; null removes it. With `expectVersion` only if the value has this version, or does not exist
   * (null); otherwise the promise rejects with `STATE_CONFLICT`. Resolves to the value as it is stored.
   */
  set(
    of: UserOf,
    key: string,
    value: JsonValue | null,
    options?: { readonly expectVersion?: number | null },
  ): Promise<UserValue | undefined>
  /** Removes all values of a user and overwrites their bytes. Resolves to how many values there were. */
  erase(of: UserOf): Promise<number>
}

/** The variables of a thread. Secrets can be set but not read. */
export interface ThreadEnv {
  /** Returns names and types, and the values of text variables only. */
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

/** A request for the variables of a child that could not be created yet. */
export interface VariablesRequest {
  readonly requestId: string
  readonly required: readonly string[]
  readonly missing: readonly string[]
  readonly expiresAt: string
  readonly status: 'open' | 'provided' | 'expired'
}

/** Requests for the values of variables that a child needs before it can be created. */
export interface ThreadVariables {
  get(threadId: string, requestId: string): Promise<VariablesRequest>
  /**
   * Stores the values and creates the deferred child with the arguments of the original call. Possible only
   * once per request.
   */
  provide(
    threadId: string,
    requestId: string,
    values: Readonly<Record<string, string>>,
    options?: { readonly by?: string },
  ): Promise<{ readonly reference: string }>
}

/** A person's consent to all calls of a tool in one thread until a time. */
export interface StandingGrant {
  readonly grantId: string
  readonly tool: string
  /** The highest risk of the calls that the grant allows. */
  readonly risk: 'write_low_risk' | 'write_high_risk'
  readonly by: string
  readonly at: string
  readonly expiresAt: string
  readonly reason?: string
  readonly status: 'active' | 'expired' | 'revoked'
  readonly revoked?: { readonly by: string; readonly at: string }
}

/**
 * The standing grants of a thread. A grant is signed, ends within a day, and is used where a policy asks one person;
 * it never replaces a denial, or a second person where the policy asks several. Forks and children do not have it.
 */
export interface ThreadGrants {
  /** Returns all grants, also those that have ended, the latest first. */
  list(threadId: string): Promise<readonly StandingGrant[]>
  /** Returns the grants that hold now, over all threads, those that end first at the front. */
  all(
    query?: Pick<ThreadQuery, 'tenant' | 'owner' | 'limit'>,
  ): Promise<readonly (StandingGrant & GrantedThread)[]>
  /** Makes a grant. Give this right only to those who may approve. */
  make(
    threadId: string,
    grant: {
      readonly tool: string
      /** For how long the grant holds, 24 hours at most. */
      readonly forMs: number
      readonly by: string
      /** Default: the risk that the tool declares. */
      readonly risk?: StandingGrant['risk']
      readonly reason?: string
    },
  ): Promise<StandingGrant>
  /** Ends a grant now. Calls that have started go on. Rejects with `GRANT_NOT_FOUND`. */
  revoke(threadId: string, grantId: string, options: { readonly by: string }): Promise<void>
}

/** Where a standing grant holds. */
interface GrantedThread {
  readonly threadId: string
  readonly agent: string
  /** The title of the thread, or its first words. */
  readonly title: string | null
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
  /** Runs a scheduled effect now instead of at its time. */
  runNow(threadId: string, effectId: string): Promise<void>
  remove(threadId: string, effectId: string): Promise<boolean>
}
