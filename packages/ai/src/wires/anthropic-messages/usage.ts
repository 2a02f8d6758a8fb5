import type { JsonObject } from '@skein/base'
import type { TokenUsage } from '../../contract/turn.ts'
import { numberOf, objectOf, without } from '../read-json.ts'

/** The API's `input_tokens` leaves out what was read from or written to the cache; ours does not. */
export function toUsage(usage: JsonObject): TokenUsage {
  const cacheReadTokens = numberOf(usage['cache_read_input_tokens']) ?? 0
  const cacheWriteTokens = numberOf(usage['cache_creation_input_tokens']) ?? 0
  const inputTokens = (numberOf(usage['input_tokens']) ?? 0) + cacheReadTokens + cacheWriteTokens
  const outputTokens = numberOf(usage['output_tokens']) ?? 0
  const byTtl = objectOf(usage['cache_creation'])
  const thinking = objectOf(usage['output_tokens_details'])?.['thinking_tokens']
  const serverTools = counts(objectOf(usage['server_tool_use']))
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cacheReadTokens,
    cacheWriteTokens,
    ...(typeof thinking === 'number' && { reasoningTokens: thinking }),
    ...(byTtl && {
      cacheWriteTokensByTtl: {
        '5m': numberOf(byTtl['ephemeral_5m_input_tokens']) ?? 0,
        '1h': numberOf(byTtl['ephemeral_1h_input_tokens']) ?? 0,
      },
    }),
    ...(serverTools && { serverToolUse: serverTools }),
    raw: usage,
  }
}

const nothing: ReadonlySet<string> = new Set()

/** `message_delta` restates counts cumulatively; what it leaves out or sets to null stands. */
export function mergeUsage(before: JsonObject, after: unknown): JsonObject {
  return { ...before, ...without(objectOf(after) ?? {}, nothing) }
}

function counts(uses: JsonObject | undefined): Record<string, number> | undefined {
  if (!uses) return undefined
  return Object.fromEntries(
    Object.entries(uses).filter((entry): entry is [string, number] => typeof entry[1] === 'number'),
  )
}

/** The other direction, for the server half. */
export function fromUsage(usage: TokenUsage): JsonObject {
  const { cacheReadTokens, cacheWriteTokens, cacheWriteTokensByTtl, reasoningTokens } = usage
  return {
    input_tokens: Math.max(0, usage.inputTokens - cacheReadTokens - cacheWriteTokens),
    cache_read_input_tokens: cacheReadTokens,
    cache_creation_input_tokens: cacheWriteTokens,
    ...(cacheWriteTokensByTtl && {
      cache_creation: {
        ephemeral_5m_input_tokens: cacheWriteTokensByTtl['5m'] ?? 0,
        ephemeral_1h_input_tokens: cacheWriteTokensByTtl['1h'] ?? 0,
      },
    }),
    output_tokens: usage.outputTokens,
    ...(reasoningTokens !== undefined && {
      output_tokens_details: { thinking_tokens: reasoningTokens },
    }),
    ...(usage.serverToolUse && { server_tool_use: { ...usage.serverToolUse } }),
  }
}
