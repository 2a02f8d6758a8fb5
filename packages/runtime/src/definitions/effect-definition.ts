import type { JsonValue } from '@skein/base'
import type { Probed, Risk } from '@skein/governance'
import type { ThreadState } from '../contract/thread-state.ts'

/**
 * Scheduled work that runs once after a delay, or repeatedly by a cron expression. It runs at most once for
 * each scheduled time, also when a process dies, unless it declares that it may run again: see `idempotent`. After a
 * failure it runs again as `retry` says.
 */
export interface EffectDefinition {
  readonly kind: 'effect'
  readonly name: string
  readonly description?: string
  readonly run: (state: ThreadState, args: JsonValue, context: EffectContext) => Promise<unknown>
  /**
   * The risk of the effect. With it, every run is judged by the policy and recorded in the audit log, and a person has
   * to approve `write_high_risk`. Without it, the effect counts as `write_low_risk` and is judged only if the agent of
   * its thread has rules of governance (`taskClass`).
   */
  readonly risk?: Risk
  /**
   * Whether running the effect twice with one idempotency key does the same as running it once. It then runs again if a
   * process died during it. Default false, also with `retry`.
   */
  readonly idempotent?: boolean
  /** Finds out whether the effect happened, after a process died during it. It must not change anything. */
  readonly probe?: (
    args: JsonValue,
    context: EffectContext,
  ) => Probed | boolean | Promise<Probed | boolean>
  /**
   * How often an effect is tried, and the delay between attempts, which doubles. A crash is an attempt. An attempt
   * whose outcome is unknown is repeated only if the effect is declared `idempotent`, or reads only.
   */
  readonly retry?: { readonly attempts: number; readonly backoffMs: number }
  /** Default 60 s. */
  readonly timeoutMs?: number
}

/** The context of one attempt of an effect. */
export interface EffectContext {
  readonly signal: AbortSignal
  readonly effectId: string
  /** The number of the attempt, from 1; attempts that a crash cut off are counted. */
  readonly attempt: number
  /** A key that is the same for every attempt of one run, and different for each run of a cron expression. */
  readonly idempotencyKey: string
}
