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
 * Returns a condition that stops a run after `milliseconds`, counted from `state.metadata.startTime` (UAP
 * §10.3), otherwise from its first message. A step that has started is finished; for a hard limit use a
 * signal.
 */
export function maxTime(
  milliseconds: number,
  { clock = systemClock }: { readonly clock?: Clock } = {},
): StopCondition {
  return ({ metadata: { startTime } }, totals) => {
    const since =
      typeof startTime === 'number' ? startTime : totals.turn.messages[0]?.timestamp.getTime()
    return since !== undefined && clock.now() - since >= milliseconds
  }
}

/** Returns a condition that stops a run after `count` steps. */
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
