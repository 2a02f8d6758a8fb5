import type { TokenUsage } from '@skein/ai'
import type { Usage } from '@skein/threads'
import type { ResolvedModel } from '../definitions/resolved.ts'
import type { RuntimeUsageRecorded } from '../event.ts'
import { costOf } from './model-options.ts'

/** Tokens of an answer as the log has them. */
export function toUsage(usage: TokenUsage): Usage {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = usage
  return {
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    ...(cacheReadTokens > 0 && { cache_read_tokens: cacheReadTokens }),
    ...(cacheWriteTokens > 0 && { cache_write_tokens: cacheWriteTokens }),
    ...(reasoningTokens !== undefined && { thinking_tokens: reasoningTokens }),
  }
}

/** Counts what was spent without a message to show for it. */
export function spentOn(model: ResolvedModel, usage: TokenUsage, at: string): RuntimeUsageRecorded {
  const costUsd = costOf(model, usage)
  return {
    type: 'usage_recorded',
    at,
    usage: toUsage(usage),
    ...(costUsd !== undefined && { costUsd }),
  }
}
