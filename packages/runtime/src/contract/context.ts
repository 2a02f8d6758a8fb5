import type { LLMInstance, Tool } from '@skein/ai'
import type { Registry, ResolvedAgent, ResolvedSide } from '../definitions/resolved.ts'
import type { PromptToolConfig, ToolDefinition } from '../definitions/types.ts'
import type { RuntimeEvent } from './event.ts'
import type {
  GovernanceWrites,
  SessionGovernor,
  SessionGovernors,
} from '../governance/session-governors.ts'
import type { EnvReader } from '../thread/env.ts'
import type { FacadeChanges } from '../thread/facade.ts'
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
import type { KernelState } from './state.ts'
import type { Clock, IdSource, InputLimits } from '@skein/base'
import type { ThreadEvent } from '@skein/threads'

/** The context of a drain. The actions of the drain read and change the thread through it. */
export interface DrainContext {
  readonly environment: KernelEnvironment
  /** The state of the thread after the last commit. */
  readonly state: KernelState
  /** The head of the thread when the drain claimed it: its id, tenant, owner and place in the tree. */
  readonly head: ThreadHead
  readonly epoch: number
  readonly signal: AbortSignal
  readonly agent: ResolvedAgent
  /** The current time as events store it (ISO 8601). */
  at(): string
  /**
   * Commits the outcome of an action together with the pending writes of the governor. The store rejects the
   * commit when another drain has claimed the thread.
   */
  commit(point: string, write: Write): Promise<void>
  /** Reads and folds the events that other writers have appended meanwhile. */
  catchUp(): Promise<void>
  env(side: ResolvedSide, tool?: PromptToolConfig): EnvReader
  /** Adds secret values that are removed from everything that this drain writes and shows. */
  hide(secrets: readonly string[]): void
  /**
   * Returns the redactor that removes the thread's secrets from texts; undefined when the thread has no
   * secrets.
   */
  redactor(): Redactor | undefined
  facade(side: ResolvedSide, options?: FacadeUse): Facade
  /**
   * Returns the tools that a side may call now. The list is built again only after a change that affects it.
   */
  tools(side: ResolvedSide): readonly Tool[]
  /** Returns the first model of a side for requests of the runtime itself, without tools and history. */
  sideModel(side: ResolvedSide, options?: { readonly system?: string }): LLMInstance
  /** Returns the governor of the running session, which admits its calls and its result. */
  governor(): Promise<SessionGovernor>
  /**
   * Drops the governor and its uncommitted writes. The next call of `governor` opens it again from the log.
   */
  dropGovernor(): void
}

/** The part of a drain's context that is needed to describe changes of a thread, also where no drain runs. */
export type ThreadPlace = Pick<DrainContext, 'environment' | 'state' | 'head' | 'at'>

/**
 * Describes the code that gets the facade. `toolCallId`, `tool` and `config` are set only if that code is a
 * tool.
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

/** The contents of one commit of an action. */
export interface Write {
  readonly events?: readonly RuntimeEvent[]
  /**
   * Writes that a governor asked to commit at once; if absent, the pending writes of the open governor are
   * committed.
   */
  readonly governance?: GovernanceWrites
  /** Changes of other threads in the same commit. */
  readonly others?: readonly ThreadChange[]
  readonly blobs?: readonly Blob[]
  readonly head?: HeadPatch
  readonly wake?: ThreadChange['wake']
  /** Makes the store reject the commit when another writer has appended to the log meanwhile. */
  readonly expectsNoMail?: boolean
  /**
   * Whether the commit records an outcome and not only an intent. Such a commit resets the thread's count of
   * attempts, because the thread is not stuck.
   */
  readonly isProgress?: boolean
}

/** The services that the kernel uses. None of them holds the state of a thread. */
export interface KernelEnvironment {
  readonly registry: Registry
  readonly store: Store
  readonly clock: Clock
  /** Generates ids, by default UUIDv7. */
  readonly ids: IdSource
  readonly vault: Vault
  readonly governors: SessionGovernors
  readonly limits: RuntimeLimits
  /** Variables of this installation. They override an agent's variables and are overridden by a thread's. */
  readonly instanceEnv: Readonly<Record<string, string>>
  /**
   * Commits, then publishes the events and wakes the threads that are due. Every commit of the kernel goes
   * through this function.
   */
  commit(commit: Commit): Promise<CommitResult>
  /** Sends events to subscribers without writing them to the log. */
  show(threadId: string, events: readonly (RuntimeEvent | ThreadEvent)[]): void
}

/** Limits of a runtime; each has a default. */
export interface RuntimeLimits extends Pick<InputLimits, 'maxToolCalls' | 'maxToolResultBytes'> {
  /** The largest number of requests for one inference, over all its models. Default 4. */
  readonly modelAttempts: number
  /**
   * Delay before the second request; it doubles with each further request. If the vendor asks for a longer
   * delay, that delay is used. Default 1 s.
   */
  readonly modelBackoffMs: number
  /** How many claims of a thread may end without progress before it is parked as failed. Default 5. */
  readonly drainAttempts: number
  /** How many levels deep children may be nested. Default 8. */
  readonly depth: number
  /** How often the same tool error may occur in a row before the session ends. Default 8. */
  readonly sameErrors: number
  /** How many steps a side without its own `maxSteps` may take in one session. Default 250. */
  readonly maxSteps: number
  readonly hookTimeoutMs: number
  readonly maxFileBytes: number
  /** Bytes of a message: of its JSON when a client or a tool sends it, of its texts when a model does. */
  readonly maxMessageBytes: number
  /** How long the runtime waits for an approval or a client's answer. Default 7 days. */
  readonly interruptTtlMs: number
  /** How long the runtime waits for the variables that a child needs. Default 24 h. */
  readonly variablesTtlMs: number
}

/**
 * Whether a drain was aborted by the stop button or by the termination of its thread. The drain then closes
 * the session itself.
 */
export function isStop(reason: unknown): boolean {
  return reason === 'stop' || reason === 'terminate'
}
