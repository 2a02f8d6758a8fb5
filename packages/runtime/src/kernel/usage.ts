import type { TokenUsage } from '@skein/ai'
import type { Usage } from '@skein/threads'

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
