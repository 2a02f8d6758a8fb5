import type { LateOutcome, Tool } from '@skein/ai'
import type { Registry, ResolvedAgent, ResolvedSide } from '../definitions/resolved.ts'
import type { PromptToolConfig, ToolDefinition } from '../definitions/types.ts'
import type { RuntimeEvent } from './event.ts'
import type {
  GovernanceWrites,
  SessionGovernor,
  SessionGovernors,
} from '../governance/session-governors.ts'
import type { Timers } from '../dispatch/dispatcher.ts'
import type { SpendingLimits } from '../limits/spending.ts'
import type { EnvReader } from '../thread/env.ts'
import type { FacadeChanges } from '../thread/facade.ts'
import type { ValueUse } from '../thread/values.ts'
import type { Redactor, Vault } from '../secrets/vault.ts'
import type {
  Blob,
  Commit,
  CommitResult,
  HeadPatch,
  Store,
  ThreadChange,
  ThreadHead,
} from '../store/store.ts'
import type { ThreadState } from './thread-state.ts'
import { StoppingError } from './error.ts'
import type { KernelState } from '../state/kernel-state.ts'
import type { KernelAction } from '../loop/next.ts'
import type { DrainTrace } from '../telemetry/drain-trace.ts'
import type { RuntimeLogger } from '../telemetry/logger.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { UserCode, LoopWatch } from '../telemetry/watchdog.ts'
import type { Clock, IdSource, InputLimits } from '@skein/base'
import type { ThreadEvent } from '@skein/threads'

/**
 * What the actions of a drain get: the thread, and the functions that change it. (A drain is the loop that
 * works on one thread until the thread has to wait.)
 */
export interface DrainContext {
  readonly environment: KernelEnvironment
  /** The state of the thread after the last commit. */
  readonly state: KernelState
  /** The row of the thread in the store when this work (drain) claimed it: id, tenant, owner, place in the tree. */
  readonly head: ThreadHead
  readonly epoch: number
  readonly signal: AbortSignal
  readonly agent: ResolvedAgent
  /** The trace spans of this work on the thread (drain); undefined without telemetry. */
  readonly trace: DrainTrace | undefined
  /** The current time as events store it (ISO 8601). */
  at(): string
  /**
   * Commits the outcome of an action (one unit of the work on the thread), together with the pending records of
   * the governor (which judges the calls of a session). The store rejects the commit if another drain has
   * claimed the thread in the meantime.
   */
  commit(point: string, write: Write): Promise<void>
  /** Returns what `next` decides now. An action that runs long asks whether it is still the right one. */
  nextAction(): KernelAction
  /** Reads the events that other writers have appended to the log, and applies them to `state`. */
  catchUp(): Promise<void>
  /** Returns the variables as a side of the conversation sees them; `agent` is that of the thread unless given. */
  env(side: ResolvedSide, tool?: PromptToolConfig, agent?: ResolvedAgent): EnvReader
  /** Adds secret values, which are removed from everything that is written and shown from now on. */
  hide(secrets: readonly string[]): void
  /**
   * Returns the redactor that removes the thread's secrets from texts; undefined when the thread has no
   * secrets.
   */
  redactor(): Redactor | undefined
  facade(side: ResolvedSide, options?: FacadeUse): Facade
  /**
   * Returns the tools that a side of the conversation may call now. The list is built again only after a change
   * that affects it.
   */
  tools(side: ResolvedSide): readonly Tool[]
  /**
   * Runs user code. The spans that it makes are children of the span of its call or scheduled effect (`id`), and the
   * watchdog can name the code if it blocks the event loop.
   */
  runUserCode<T>(code: Omit<UserCode, 'threadId'> & { readonly id?: string }, work: () => T): T
  /** Returns the governor of the running session, which admits its calls and its result. */
  governor(): Promise<SessionGovernor>
  /**
   * Drops the governor and its uncommitted writes. The next call of `governor` opens it again from the log.
   */
  dropGovernor(): void
}

/** What is needed to make events of a thread. The API has only this much, because it does not work on the thread. */
export type ThreadPlace = Pick<DrainContext, 'environment' | 'state' | 'head' | 'at'>

/**
 * Describes the user code that gets a facade, i.e. its view of the thread. `toolCallId`, `tool` and `config`
 * are set only if that code is a tool.
 */
export interface FacadeUse {
  readonly toolCallId?: string
  readonly tool?: ToolDefinition
  readonly config?: PromptToolConfig | undefined
  readonly signal?: AbortSignal
}

/** The state of a thread for user code, with the changes that the code made through it. */
export interface Facade {
  readonly state: ThreadState
  /**
   * Returns every secret value of the thread, including values that were set through this facade and are not
   * committed yet.
   */
  secrets(): readonly string[]
  takeChanges(): FacadeChanges
}

/** What one action (unit of the work on a thread) commits at once. */
export interface Write {
  readonly events?: readonly RuntimeEvent[]
  /**
   * Records that the governor (which judges calls) wants committed at once; if absent, the pending records of
   * the open governor are committed.
   */
  readonly governance?: GovernanceWrites
  /**
   * Changes of other threads in the same commit. A change of the parent with `mustBeLive` is left out if the
   * parent was terminated, erased or removed meanwhile.
   */
  readonly others?: readonly ThreadChange[]
  /** The events to write instead of `events` if the change of the parent is left out. */
  readonly undelivered?: readonly RuntimeEvent[]
  readonly blobs?: readonly Blob[]
  readonly head?: HeadPatch
  readonly wake?: ThreadChange['wake']
  /**
   * Which values of the thread were read, and which are set. If another writer has set a value between its
   * reading and its setting here, the commit is refused with `STATE_CONFLICT`.
   */
  readonly values?: ValueUse
  /**
   * Called if the write cannot be stored, because another drain has claimed the thread, or the store or this work has
   * failed, and this drain does not try again.
   */
  readonly onLost?: () => void
  /** Returns the write that replaces this one if it is refused with `STATE_CONFLICT`. */
  readonly onConflict?: (error: unknown) => Omit<Write, 'values' | 'governance' | 'onLost'>
  /** Makes the store reject the commit when another writer has appended to the log meanwhile. */
  readonly expectsNoMail?: boolean
  /**
   * Whether the commit records that something was done, and not only that something begins. Such a commit
   * resets the thread's count of failed attempts, because the thread is not stuck.
   */
  readonly isProgress?: boolean
  /** Gives the lease (the right to work on the thread) back with this commit, because the work ends. */
  readonly releases?: boolean
  /**
   * Whether the write says only that something begins. It is written at once but not synced by itself, so it
   * survives the death of the process, and a failure of the machine only if a later commit was synced.
   */
  readonly isLazy?: boolean
  /**
   * Lets the write join the next commit of the same work (drain): its events change the state now, and are
   * stored together with the next ones. Only for a write on which nothing outside this work relies until then.
   * Before an action (unit of work) that does not begin with a commit, the write is committed by itself.
   *
   * If another writer appends to the log in between, `true` commits the same write again. A function is
   * called instead: it commits what is right then, with the `commit` that it gets, and returns whether the
   * write was still right.
   */
  readonly joinsNext?: true | ((commit: DrainContext['commit']) => Promise<boolean>)
}

/**
 * The services that the work on threads (drains) and the API use. None of them holds the state of a thread.
 */
export interface KernelEnvironment {
  readonly registry: Registry
  /** See `RuntimeOptions.pin`; default `none`. */
  readonly pin?: 'none' | 'session' | undefined
  readonly store: Store
  readonly clock: Clock
  /** Generates ids, by default UUIDv7. */
  readonly ids: IdSource
  readonly vault: Vault
  readonly governors: SessionGovernors
  readonly limits: RuntimeLimits
  readonly timers: Timers
  /** What tenants and users may spend; undefined without such limits. */
  readonly spending?: SpendingLimits | undefined
  /** Variables of this installation. They override an agent's variables and are overridden by a thread's. */
  readonly instanceEnv: Readonly<Record<string, string>>
  /**
   * Commits, then publishes the events and wakes the threads that are due. Every commit, by the work on a
   * thread or by the API, goes through this function.
   */
  commit(commit: Commit): Promise<CommitResult>
  /**
   * Calls the listener with each event, committed in this process, that makes the thread's running model
   * request obsolete. Returns a function that removes the listener. The listener is only an early hint; what
   * happened is read from the log.
   */
  onEdit(threadId: string, listener: (event: ObsoletingEvent) => void): () => void
  /** Sends events to subscribers without writing them to the log. */
  show(threadId: string, events: readonly (RuntimeEvent | ThreadEvent)[]): void
  readonly telemetry?: Telemetry | undefined
  readonly watchdog?: LoopWatch | undefined
  readonly logger?: RuntimeLogger | undefined
  /**
   * Records what a call or a scheduled effect has ended with, after its outcome was recorded as unknown or while the
   * work that had started it could store nothing any more. It never throws.
   */
  late(report: LateReport): void
  /** Reports an error of background work to the operator (`onError`). It never throws. */
  report(error: unknown, threadId: string): void
}

/** What a call or a scheduled effect has ended with, although nothing waits for it any more. */
export interface LateReport {
  readonly threadId: string
  readonly turnId: string
  /** The call; of a scheduled effect, the id of the attempt. */
  readonly toolCallId: string
  readonly toolName: string
  readonly outcome: LateOutcome
  /** The id of the call, or of the attempt, for the governor. */
  readonly callId: string
  /** Whether a governor has judged the call. */
  readonly isGoverned: boolean
  readonly effect?: { readonly effectId: string }
}

/** A message was edited or removed, or a message was queued that cuts the running turn. */
export type ObsoletingEvent = Extract<
  RuntimeEvent,
  { type: 'message_updated' | 'message_removed' | 'message_queued' }
>

/** Limits of a runtime; each has a default. */
export interface RuntimeLimits extends Pick<InputLimits, 'maxToolCalls' | 'maxToolResultBytes'> {
  /** The largest number of requests for one answer of a model, including its fallback models. Default 4. */
  readonly modelAttempts: number
  /**
   * Delay before the second request; it doubles with each further request. If the vendor asks for a longer
   * delay, that delay is used. Default 1 s.
   */
  readonly modelBackoffMs: number
  /** How long a model may send nothing before its request is cut and sent again. Default 10 min. */
  readonly modelIdleMs: number
  /** How long one request to a model may take before it is cut and sent again. Default 1 h. */
  readonly modelMs: number
  /**
   * How many failures without progress a thread may have before the runtime gives it up: errors of the work
   * on it, and deaths of a process in which this thread worked alone. Default 5.
   */
  readonly drainAttempts: number
  /**
   * How long a process may work on a thread without renewing its lease (its sole right to work on the
   * thread). The process renews the lease after a third, and gives up its calls after two thirds. Default 30
   * s; with `nodes` or an engine 7.5 s, so that another node goes on within 10 s after a death.
   */
  readonly leaseMs: number
  /** How many levels deep children may be nested. Default 8. */
  readonly depth: number
  /** How many steps in a row may fail with the same tool error before the session ends. Default 8. */
  readonly sameErrors: number
  /** How many steps a side of the conversation without its own `maxSteps` may take in one session. Default 250. */
  readonly maxSteps: number
  /**
   * How often agents may hand a thread over before a person has to speak again. Default 10. Until a person
   * speaks, the steps, turns and repeated errors of each agent count over all its sessions.
   */
  readonly maxHandoffs: number
  readonly hookTimeoutMs: number
  readonly maxFileBytes: number
  /**
   * The largest image that is sent to a model; of a larger one only the name is sent. Default 3.75 MiB, which
   * is 5 MiB as base64.
   */
  readonly maxImageBytes: number
  /** The maximum bytes of all files in one request; the newest files are sent first. Default 14 MiB. */
  readonly maxMediaBytes: number
  /** The maximum number of files in one request. Default 20. */
  readonly maxMediaFiles: number
  /** The maximum bytes of a message: of its JSON from a client or a tool, of its texts from a model. */
  readonly maxMessageBytes: number
  /**
   * How long a write may take to end by itself after its time limit, or after it was told to stop; a result within this
   * time counts. After it, the write is in doubt. Default 5 s.
   */
  readonly stopGraceMs: number
  /** How long the runtime waits for an approval or a client's answer. Default 7 days. */
  readonly interruptTtlMs: number
  /** How long the runtime waits for the variables that a child needs. Default 24 h. */
  readonly variablesTtlMs: number
  /**
   * How long the event loop may stand still before the watchdog names the tool, hook or scheduled effect that is
   * running. `Infinity` switches the watchdog off. Default 1 s.
   */
  readonly loopBlockedMs: number
}

/**
 * Whether the work on a thread was aborted by the stop button or by the thread's termination. That work then
 * closes the session itself.
 */
export function isStop(reason: unknown): boolean {
  return reason === 'stop' || reason === 'terminate'
}

/** Why the calls of a turn are aborted that a new message cuts. */
export const CUT = 'cut'

/** Whether the work on a thread was aborted because the process stops. Another process continues the thread. */
export function isShutdown(reason: unknown): reason is StoppingError {
  return reason instanceof StoppingError
}
