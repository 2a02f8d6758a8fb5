import type { JsonObject } from '@skein/base'
import type { TokenUsage } from '../../contract/turn.ts'
import { numberOf, objectOf, without } from '../read-json.ts'

/**
 * Reads the usage. Our input tokens include tokens read from or written to the cache; the API's
 * `input_tokens` do not.
 */
export function toUsage(usage: JsonObject): TokenUsage {
  const cacheReadTokens = numberOf(usage['cache_read_input_tokens']) ?? 0
  const cacheWriteTokens = numberOf(usage['cache_creation_input_tokens']) ?? 0
  const inputTokens = (numberOf(usage['input_tokens']) ?? 0) + cacheReadTokens + cacheWriteTokens
  const outputTokens = numberOf(usage['output_tokens']) ?? 0
  const byTtl = objectOf(usage['cache_creation'])
  const thinking = objectOf(usage['output_tokens_details'])?.['thinking_tokens']
  const uses = objectOf(usage['server_tool_use'])
  const serverTools =
    uses &&
    Object.fromEntries(
      Object.entries(uses).filter(
        (entry): entry is [string, number] => typeof entry[1] === 'number',
      ),
    )
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cacheReadTokens,
    cacheWriteTokens,
    reasoningTokens: typeof thinking === 'number' ? thinking : undefined,
    cacheWriteTokensByTtl: byTtl && {
      '5m': numberOf(byTtl['ephemeral_5m_input_tokens']) ?? 0,
      '1h': numberOf(byTtl['ephemeral_1h_input_tokens']) ?? 0,
    },
    serverToolUse: serverTools,
    raw: usage,
  }
}

const nothing: ReadonlySet<string> = new Set()

/**
 * Merges the counts of `message_delta`, which are cumulative; a missing or null count keeps its old
 * value.
 */
export function mergeUsage(before: JsonObject, after: unknown): JsonObject {
  return { ...before, ...without(objectOf(after) ?? {}, nothing) }
}

/** Writes usage in the API's format, for servers that speak this format. */
export function fromUsage(usage: TokenUsage): JsonObject {
  const { cacheReadTokens, cacheWriteTokens, cacheWriteTokensByTtl, reasoningTokens } = usage
  return {
    input_tokens: Math.max(0, usage.inputTokens - cacheReadTokens - cacheWriteTokens),
    cache_read_input_tokens: cacheReadTokens,
    cache_creation_input_tokens: cacheWriteTokens,
    cache_creation: cacheWriteTokensByTtl && {
      ephemeral_5m_input_tokens: cacheWriteTokensByTtl['5m'] ?? 0,
      ephemeral_1h_input_tokens: cacheWriteTokensByTtl['1h'] ?? 0,
    },
    output_tokens: usage.outputTokens,
    output_tokens_details:
      reasoningTokens === undefined ? undefined : { thinking_tokens: reasoningTokens },
    server_tool_use: usage.serverToolUse && { ...usage.serverToolUse },
  }
}
