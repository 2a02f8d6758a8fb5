import type { TokenUsage } from '@skein/ai'
import { tokenCost } from '@skein/ai/middleware'
import type { Usage } from '@skein/threads'
import type { RuntimeUsageRecorded } from './event.ts'
import type { ResolvedModel } from '../definitions/resolved.ts'
import type { Budget } from '../definitions/agent-definition.ts'

/** Converts the token usage of an answer to the form that the log stores. */
export function toThreadUsage(usage: TokenUsage): Usage {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = usage
  return {
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    cache_read_tokens: cacheReadTokens > 0 ? cacheReadTokens : undefined,
    cache_write_tokens: cacheWriteTokens > 0 ? cacheWriteTokens : undefined,
    thinking_tokens: reasoningTokens,
  }
}

/**
 * Returns the event for tokens that were spent without adding a message to the history, e.g. on a summary.
 * `logId` names the request if it is in the log.
 */
export function spentOn(
  model: ResolvedModel,
  usage: TokenUsage,
  { at, logId }: Pick<RuntimeUsageRecorded, 'at' | 'logId'>,
): RuntimeUsageRecorded {
  const amounts = { usage: toThreadUsage(usage), costUsd: costOf(model, usage) }
  return { type: 'usage_recorded', at, ...amounts, logId }
}

/**
 * Returns the cost of an answer in US dollars: the vendor's own number, else computed from the model's
 * prices.
 */
export function costOf({ price }: ResolvedModel, usage: TokenUsage): number | undefined {
  return usage.costUsd ?? (price && tokenCost(usage, price))
}

/** The tokens, known cost and time that a thread or a whole tree has used so far. */
export interface BudgetUsage {
  readonly tokens: number
  readonly costUsd: number
  readonly durationMs: number
}

/** Returns a sentence that names the limit that is reached; undefined when none is. */
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

/** Rounds an amount to hide the inexactness of binary fractions: 0.1 + 0.2 is shown as 0.3. */
function toDollars(usd: number): string {
  return String(Number(usd.toFixed(6)))
}
