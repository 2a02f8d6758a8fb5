import type { TokenUsage } from '@skein/ai'
import type { AgentStrategy } from './agent-types.ts'

type Condition = NonNullable<AgentStrategy['stopCondition']>

/** The stop conditions that need the cost of every inference. */
const conditions = new WeakSet<Condition>()

/** Marks a stop condition as one that needs the cost of every inference. */
export function withCost<C extends Condition>(condition: C): C {
  conditions.add(condition)
  return condition
}

/** True for a stop condition that needs the cost of every inference. */
export function needsCost(condition: Condition | undefined): boolean {
  return condition !== undefined && conditions.has(condition)
}

/** True for the usage of an inference whose cost is not known. */
export function isUnpriced({ costUsd, totalTokens }: TokenUsage): boolean {
  return costUsd === undefined && totalTokens > 0
}
