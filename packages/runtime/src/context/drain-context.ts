import type { Tool } from '@skein/ai'
import type { CommitWrite } from './write.ts'
import type { KernelEnvironment } from './environment.ts'
import type { ThreadState } from '../contract/thread-state.ts'
import type { ResolvedAgent, ResolvedSide } from '../definitions/resolved.ts'
import type { PromptToolConfig } from '../definitions/prompt-definition.ts'
import type { ToolDefinition } from '../definitions/tool-definition.ts'
import type { SessionGovernor } from '../governance/session-governor.ts'
import type { KernelAction } from '../state/kernel-action.ts'
import type { Redactor } from '../secrets/vault.ts'
import type { KernelState } from '../state/kernel-state.ts'
import type { ThreadHead } from '../store/head.ts'
import type { DrainTrace } from '../telemetry/drain-trace.ts'
import type { UserCode } from '../telemetry/watchdog.ts'
import type { EnvReader } from '../thread/env.ts'
import type { FacadeChanges } from '../thread/facade.ts'

/**
 * What the actions of a drain get: the thread, and the functions that change it. (A drain is the loop that
 * works on one thread until the thread has to wait.)
 */
export interface DrainContext {
  readonly environment: KernelEnvironment
  /** The state of the thread after the last commit. */
  readonly state: KernelState
  /** The row of the thread in the store when this drain claimed it: id, tenant, owner, place in the tree. */
  readonly head: ThreadHead
  readonly epoch: number
  readonly signal: AbortSignal
  readonly agent: ResolvedAgent
  /** The trace spans of this drain; undefined without telemetry. */
  readonly trace: DrainTrace | undefined
  /** The current time as events store it (ISO 8601). */
  at(): string
  /**
   * Commits the outcome of an action, together with the pending records of
   * the governor (which judges the calls of a session). The store rejects the commit if another drain has
   * claimed the thread in the meantime.
   */
  readonly commit: CommitWrite
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
