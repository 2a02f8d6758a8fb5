import type { JsonObject } from '@skein/base'
import { type TokenUsage, zeroUsage } from '../../contract/turn.ts'
import { countOf, numberOf, objectOf } from '../read-json.ts'

/** Reads `usage` of a response; the counts of server tools are in `tool_usage`. */
export function toUsage(raw: JsonObject | undefined, toolUsage?: JsonObject): TokenUsage {
  if (!raw) return zeroUsage
  const input = objectOf(raw['input_tokens_details'])
  const inputTokens = countOf(raw['input_tokens'])
  const outputTokens = countOf(raw['output_tokens'])
  const reasoningTokens = numberOf(objectOf(raw['output_tokens_details'])?.['reasoning_tokens'])
  const byTtl = objectOf(input?.['cache_write_tokens_details'])
  const searches = countOf(objectOf(toolUsage?.['web_search'])?.['num_requests'])
  const costUsd = numberOf(raw['cost'])
  return {
    inputTokens,
    outputTokens,
    totalTokens: numberOf(raw['total_tokens']) ?? inputTokens + outputTokens,
    cacheReadTokens: countOf(input?.['cached_tokens']),
    cacheWriteTokens: countOf(input?.['cache_write_tokens']),
    reasoningTokens,
    cacheWriteTokensByTtl: byTtl && {
      '30m': countOf(byTtl['ttl_30m_tokens']),
      '12h': countOf(byTtl['ttl_12h_tokens']),
    },
    serverToolUse: searches > 0 ? { web_search_requests: searches } : undefined,
    costUsd,
    raw,
  }
}

/** Writes usage in the format of Responses, for servers that speak this format. */
export function fromUsage(usage: TokenUsage): JsonObject {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: {
      cached_tokens: usage.cacheReadTokens,
      cache_write_tokens: usage.cacheWriteTokens,
    },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 },
    total_tokens: usage.totalTokens,
    cost: usage.costUsd,
  }
}
