import type { LLMInstance, Tool } from '@skein/ai'
import type { Registry, ResolvedAgent, ResolvedSide } from './definitions/resolved.ts'
import type { PromptToolConfig, ToolDefinition } from './definitions/types.ts'
import type { RuntimeEvent } from './event.ts'
import type {
  GovernanceWrites,
  SessionGovernor,
  SessionGovernors,
} from './governance/session-governor.ts'
import type { EnvReader } from './thread/env.ts'
import type { FacadeChanges } from './thread/facade.ts'
import type { Redactor, Vault } from './secrets/vault.ts'
import type {
  Blob,
  Commit,
  CommitResult,
  HeadPatch,
  Store,
  ThreadChange,
  ThreadHead,
} from './store/store.ts'
import type { ThreadState } from './thread-state.ts'
import type { KernelState } from './state.ts'
import type { Clock, IdSource } from '@skein/base'
import type { ThreadEvent } from '@skein/threads'

/** What the actions of a drain work with. */
export interface DrainContext {
  readonly environment: KernelEnvironment
  /** As of the last commit. */
  readonly state: KernelState
  /** As of the claim: identity and place of the thread. */
  readonly head: ThreadHead
  readonly epoch: number
  readonly signal: AbortSignal
  readonly agent: ResolvedAgent
  /** The time, as events have it. */
  at(): string
  /** Writes the outcome of an action, with whatever the governor has to write, guarded by the fence. */
  commit(point: string, write: Write): Promise<void>
  /** Folds what others have appended meanwhile. */
  catchUp(): Promise<void>
  env(side: ResolvedSide, tool?: PromptToolConfig): EnvReader
  /** Keeps further values out of everything that this drain writes and shows. */
  hide(secrets: readonly string[]): void
  /** Undefined while the thread has no secrets. */
  redactor(): Redactor | undefined
  facade(side: ResolvedSide, options?: FacadeUse): Facade
  /** What a side may call now. Made again only when something changed that it depends on. */
  tools(side: ResolvedSide): readonly Tool[]
  /** The first model of a side, for what the runtime itself asks: without tools and history. */
  sideModel(side: ResolvedSide, options?: { readonly system?: string }): LLMInstance
  /** The gates of the running session. */
  governor(): Promise<SessionGovernor>
  /** Forgets what the governor has not committed. */
  dropGovernor(): void
}

/** Enough to say what changes in and around a thread, also where no drain runs. */
export type ThreadPlace = Pick<DrainContext, 'environment' | 'state' | 'head' | 'at'>

/** Who is given the state of the thread: a tool with its call, or nobody in particular. */
export interface FacadeUse {
  readonly toolCallId?: string
  readonly tool?: ToolDefinition
  readonly config?: PromptToolConfig | undefined
  readonly signal?: AbortSignal
}

/** The state of the thread for code of the user, and what that code changed through it. */
export interface Facade {
  readonly state: ThreadState
  /** Every secret value of the thread, also those that were just set here and are not committed yet. */
  secrets(): readonly string[]
  takeChanges(): FacadeChanges
}

/** What one action makes true. */
export interface Write {
  readonly events?: readonly RuntimeEvent[]
  /** What a governor asked to be written at once; otherwise it is taken from the open one. */
  readonly governance?: GovernanceWrites
  /** Other threads that change with it. */
  readonly others?: readonly ThreadChange[]
  readonly blobs?: readonly Blob[]
  readonly head?: HeadPatch
  readonly wake?: ThreadChange['wake']
  /** Refused when the log has moved. */
  readonly expectsNoMail?: boolean
  /** An outcome, not only an intent: the thread is not stuck. */
  readonly isProgress?: boolean
}

/** What the kernel works with. Nothing in it holds the state of a thread. */
export interface KernelEnvironment {
  readonly registry: Registry
  readonly store: Store
  readonly clock: Clock
  /** UUIDv7 by default. */
  readonly ids: IdSource
  readonly vault: Vault
  readonly governors: SessionGovernors
  readonly limits: RuntimeLimits
  /** Variables of this installation: weaker than a thread's, stronger than an agent's. */
  readonly instanceEnv: Readonly<Record<string, string>>
  /** Commits, then publishes the events and wakes the threads that are due. All commits go through here. */
  commit(commit: Commit): Promise<CommitResult>
  /** Shows something that is not part of the log. */
  show(threadId: string, events: readonly (RuntimeEvent | ThreadEvent)[]): void
}

/** Limits of a runtime; each has a default. */
export interface RuntimeLimits {
  /** Tries of one model request over all its models. Default 4. */
  readonly modelAttempts: number
  /** Wait before the second try; doubles. Default 1 s. */
  readonly modelBackoffMs: number
  /** Claims of a thread without progress after which it is parked as failed. Default 5. */
  readonly drainAttempts: number
  /** Levels of children. Default 8. */
  readonly depth: number
  /** The same tool error this often in a row ends the session. Default 8. */
  readonly sameErrors: number
  /** Steps of one side in one session without `maxSteps`. Default 250. */
  readonly maxSteps: number
  readonly hookTimeoutMs: number
  readonly maxFileBytes: number
  readonly maxMessageBytes: number
  /** How long an approval or a client's answer is waited for. Default 7 days. */
  readonly interruptTtlMs: number
  /** How long variables of a deferred child are waited for. Default 24 h. */
  readonly variablesTtlMs: number
}

/** Why a drain is aborted. The reason of the drain's signal. */
export type Interruption = 'stop' | 'terminate' | 'shutdown'

/** The stop button, or the end of the thread: the drain closes the session itself. */
export function isStop(reason: unknown): boolean {
  return reason === 'stop' || reason === 'terminate'
}
