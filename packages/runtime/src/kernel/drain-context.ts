import type { ResolvedAgent, ResolvedSide } from '../definitions/resolved.ts'
import type { PromptToolConfig, ToolDefinition } from '../definitions/types.ts'
import type { RuntimeEvent } from '../event.ts'
import type { GovernanceWrites, SessionGovernor } from '../governance/session-governors.ts'
import type { EnvReader } from '../services/env-reader.ts'
import type { FacadeChanges } from '../services/thread-facade.ts'
import type { Redactor } from '../services/vault.ts'
import type { Blob, HeadPatch, ThreadChange, ThreadHead } from '../store/store.ts'
import type { ThreadState } from '../thread-state.ts'
import type { KernelEnvironment } from './environment.ts'
import type { KernelState } from './state.ts'

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
  /** The gates of the running session. */
  governor(): Promise<SessionGovernor>
  /** Forgets what the governor has not committed. */
  dropGovernor(): void
}

/** Enough to say what changes in and around a thread, also where no drain runs. */
export type ThreadPlace = Pick<DrainContext, 'environment' | 'state' | 'head' | 'at'>

export interface FacadeUse {
  readonly toolCallId?: string
  readonly tool?: ToolDefinition
  readonly config?: PromptToolConfig | undefined
  readonly signal?: AbortSignal
}

export interface Facade {
  readonly state: ThreadState
  /** With those that were set through it and are not committed yet. */
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
