import { systemClock, type Clock } from '@skein/base'
import type { AgentState } from '../state/state.ts'
import type { RunTotals } from '../contract/agent-types.ts'

/** A function for `strategy.stopCondition`, which is called after every step. */
export type StopCondition = (state: AgentState, totals: RunTotals) => boolean | Promise<boolean>

/** Returns a condition that stops a run when the run and its sub-agents have used `tokens` tokens. */
export function maxTokens(tokens: number): StopCondition {
  return (_, { usage }) => usage.totalTokens >= tokens
}

/**
 * Returns a condition that stops a run when the run and its sub-agents have cost `usd` dollars. Costs are
 * reported by the vendor or computed by `costMiddleware` of `@skein/ai`, which each agent needs in its
 * `llmMiddleware`.
 */
export function maxCost(usd: number): StopCondition {
  return (_, { usage }) => (usage.costUsd ?? 0) >= usd
}

/**
 * Returns a condition that stops a run after `milliseconds` of work, without the time in which it waited for
 * answers. If the state's metadata has a `startTime` (UAP §10.3), the time since then counts instead. A step
 * that has started is finished; for a hard limit use a signal.
 */
export function maxTime(
  milliseconds: number,
  { clock = systemClock }: { readonly clock?: Clock } = {},
): StopCondition {
  return ({ metadata: { startTime } }, { durationMs }) => {
    const passed = typeof startTime === 'number' ? clock.now() - startTime : durationMs
    return passed >= milliseconds
  }
}

/** Returns a condition that stops a run after `count` steps, with those of sub-agents that share its budget. */
export function maxSteps(count: number): StopCondition {
  return (_, { steps }) => steps >= count
}

/** Returns a condition that stops a run when any of the given conditions holds. */
export function anyOf(...conditions: readonly StopCondition[]): StopCondition {
  return async (state, totals) => {
    for (const condition of conditions) if (await condition(state, totals)) return true
    return false
  }
}
