import type { Clock, IdSource } from '@skein/base'
import type { GovernorLimits, Policy } from '@skein/governance'
import type { ApprovalIssuer } from '@skein/governance/approvals'
import type { RuntimeLimits } from './contract/limits.ts'
import type { RetentionRule, SpendingRule } from './contract/operator-limits.ts'
import type { RegistryOptions } from './definitions/load/registry.ts'
import type { Registry } from './definitions/resolved.ts'
import type { Dispatcher, Timers } from './dispatch/dispatcher.ts'
import type { GovernanceKeys } from './governance/governance-keys.ts'
import type { NodesOptions } from './nodes/nodes.ts'
import type { SecretKeyOptions } from './secrets/open-vault.ts'
import type { Store } from './store/store.ts'
import type { RuntimeLogger } from './telemetry/logger.ts'
import type { RuntimeTelemetry } from './telemetry/telemetry.ts'

/**
 * The options of a runtime. The agents come from `agents` or `registry`; every other option may be left out.
 */
export interface RuntimeOptions extends Omit<RegistryOptions, 'agents'>, SecretKeyOptions {
  /** The agents. The prompts, tools and agents to which they refer need not be listed. */
  readonly agents?: RegistryOptions['agents']
  /**
   * A registry that was loaded already, e.g. by `discover`; `agents` and all other definitions are then
   * ignored.
   */
  readonly registry?: Registry
  /**
   * The definitions of the previous version, e.g. from `discover`, for deploys without a pause. A session that
   * began with them uses them until it ends, also after a restart; new sessions use the current definitions.
   */
  readonly previous?: Registry
  /**
   * Which definitions a running session uses after a deploy. `none` (default): from the next step on, those of the
   * process that works on it. `session`: only those with which the session began; a process with other definitions
   * leaves the thread in the state `waiting` for a process that has them. The code of tools is not compared.
   */
  readonly pin?: 'none' | 'session'
  /**
   * The folder of the database and the keys. Without a folder and without a store, everything is kept in
   * memory.
   */
  readonly folder?: string
  readonly store?: Store
  /** Creates the part that starts work on threads. Default: a dispatcher for one process. */
  readonly dispatcher?: (parts: DispatcherParts) => Dispatcher
  readonly clock?: Clock
  readonly timers?: Timers
  /** Ids of threads, messages and sessions. Default: UUIDv7. */
  readonly ids?: IdSource
  /**
   * The name of this process in its leases, among all that use the store. No two processes may ever
   * have the same name, not even one after the other. Default: a random name.
   */
  readonly owner?: string
  /** Set if several processes share the store and work as one (docs/nodes.md). Default: this process works alone. */
  readonly nodes?: NodesOptions
  /** Names this installation in audit logs and approvals. Default `skein`. */
  readonly id?: string
  /** Variables of this installation; a thread's variable of the same name overrides them. */
  readonly env?: Readonly<Record<string, string>>
  readonly keys?: GovernanceKeys
  /**
   * Decides about calls of tools. Default: low-risk writes are allowed, high-risk writes need the approval of
   * a person.
   */
  readonly policy?: Policy | readonly Policy[]
  /** Other issuers whose signed approvals are accepted, by name. */
  readonly issuers?: Readonly<Record<string, ApprovalIssuer>>
  readonly governorLimits?: GovernorLimits
  readonly limits?: Partial<RuntimeLimits>
  /** How much tenants and users may spend on models in a period. Default: no limit. */
  readonly spending?: readonly SpendingRule[]
  /**
   * Which threads are erased or removed after some time, and how often the runtime looks for them
   * (`everyMs`, default one hour). Default: none.
   */
  readonly retention?: {
    readonly rules: readonly RetentionRule[]
    readonly everyMs?: number
  }
  /** The largest number of threads that are worked on at the same time. Default 128. */
  readonly maxConcurrent?: number
  /** Called with errors of background work, which no caller is waiting for. */
  readonly onError?: (error: unknown, threadId?: string) => void
  /**
   * Logs failures and ended sessions; more at level `debug`. A logger of pino fits. Texts of conversations and
   * secrets are not logged. Default: none.
   */
  readonly logger?: RuntimeLogger
  /** OpenTelemetry: spans and metrics of sessions, turns, calls, waits and commits. Default: none. */
  readonly telemetry?: RuntimeTelemetry
}

/** What a runtime passes to its dispatcher. */
export interface DispatcherParts extends Pick<RuntimeOptions, 'maxConcurrent'> {
  readonly store: Store
  readonly timers: Timers
  readonly onError: (error: unknown, threadId?: string) => void
}
