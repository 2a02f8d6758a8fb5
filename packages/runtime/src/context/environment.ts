import type { LateOutcome } from '@skein/ai'
import type { Clock, IdSource } from '@skein/base'
import type { ThreadEvent } from '@skein/threads'
import type { RuntimeEvent } from '../contract/event.ts'
import type { RuntimeLimits } from '../contract/limits.ts'
import type { ObsoletingEvent } from '../contract/obsoleting-event.ts'
import type { Registry } from '../definitions/resolved.ts'
import type { Timers } from '../dispatch/dispatcher.ts'
import type { SessionGovernors } from '../governance/session-governors.ts'
import type { SpendingLimits } from '../limits/spending.ts'
import type { Vault } from '../secrets/vault.ts'
import type { Commit, CommitResult } from '../store/commit.ts'
import type { Store } from '../store/store.ts'
import type { RuntimeLogger } from '../telemetry/logger.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { LoopWatch } from '../telemetry/watchdog.ts'

/**
 * The services that drains and the API use. None of them holds the state of a thread.
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
  /** What measures the time limits of calls; undefined for the timers of the platform. */
  readonly callTimers?: Timers | undefined
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
