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
  /** Also applies to threads that wait for a person, client or spending period, or that have effects. */
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
