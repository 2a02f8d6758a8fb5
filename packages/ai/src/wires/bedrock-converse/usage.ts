import type { JsonObject } from '@skein/base'
import type { TokenUsage } from '../../contract/turn.ts'
import { countOf } from '../read-json.ts'

/** Reads the usage. The API counts what was read from and written to the cache separately from the input. */
export function toUsage(usage: JsonObject): TokenUsage {
  const cacheReadTokens = countOf(usage['cacheReadInputTokens'])
  const cacheWriteTokens = countOf(usage['cacheWriteInputTokens'])
  const inputTokens = countOf(usage['inputTokens']) + cacheReadTokens + cacheWriteTokens
  const outputTokens = countOf(usage['outputTokens'])
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cacheReadTokens,
    cacheWriteTokens,
    raw: usage,
  }
}

/** Writes usage in the API's format, for servers that speak this format. */
export function fromUsage(usage: TokenUsage): JsonObject {
  const { inputTokens, outputTokens, totalTokens, cacheReadTokens, cacheWriteTokens } = usage
  return {
    inputTokens: inputTokens - cacheReadTokens - cacheWriteTokens,
    outputTokens,
    totalTokens,
    cacheReadInputTokens: cacheReadTokens,
    cacheWriteInputTokens: cacheWriteTokens,
  }
}
