import type { Clock, IdSource } from '@skein/base'
import type { ThreadEvent } from '@skein/threads'
import type { Registry } from '../definitions/resolved.ts'
import type { RuntimeEvent, StoredEvent } from '../event.ts'
import type { SessionGovernors } from '../governance/session-governors.ts'
import type { Vault } from '../services/vault.ts'
import type { Commit, CommitResult, Store } from '../store/store.ts'

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
  /** Commits, then tells whoever watches and wakes the threads that want it. All commits go through here. */
  commit(commit: Commit): Promise<CommitResult>
  /** Shows something that is not part of the log. */
  show(threadId: string, events: readonly (RuntimeEvent | ThreadEvent)[]): void
}

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

export type { StoredEvent }
