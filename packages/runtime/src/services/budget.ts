import type { Budget } from '../definitions/types.ts'

/** What was used so far, by a thread or by a whole tree. */
export interface BudgetUsage {
  readonly tokens: number
  readonly costUsd: number
  readonly durationMs: number
}

/** Why no further model call may be made: names the limit that is reached; undefined while none is. */
export function budgetReason(budget: Omit<Budget, 'tree'>, used: BudgetUsage): string | undefined {
  const { maxTokens, maxCostUsd, maxDurationMs } = budget
  if (isReached(used.tokens, maxTokens)) {
    return `maxTokens: ${used.tokens} of ${maxTokens} tokens are used.`
  }
  if (isReached(used.costUsd, maxCostUsd)) {
    return `maxCostUsd: ${toDollars(used.costUsd)} of ${toDollars(maxCostUsd)} US dollars are used.`
  }
  if (isReached(used.durationMs, maxDurationMs)) {
    return `maxDurationMs: ${used.durationMs} of ${maxDurationMs} ms are used.`
  }
  return undefined
}

function isReached(used: number, max: number | undefined): max is number {
  return max !== undefined && used >= max
}

/** Without the noise of binary fractions: 0.1 + 0.2 is 0.3. */
function toDollars(usd: number): string {
  return String(Number(usd.toFixed(6)))
}
