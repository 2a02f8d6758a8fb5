import type { JsonObject } from '@skein/base'
import type { TokenUsage } from '../../contract/turn.ts'
import { listOf, numberOf, objectOf, textOf } from '../read-json.ts'

/**
 * Reads the usage. The API counts thoughts and the results of its own tools separately; here thoughts
 * are added to the output and tool results to the input.
 */
export function toUsage(usage: JsonObject): TokenUsage {
  const count = (name: string): number => numberOf(usage[name]) ?? 0
  const inputTokens = count('promptTokenCount') + count('toolUsePromptTokenCount')
  const outputTokens = count('candidatesTokenCount') + count('thoughtsTokenCount')
  const thoughts = numberOf(usage['thoughtsTokenCount'])
  let tokensByModality: Record<string, number> | undefined
  for (const [field, side] of Object.entries(details)) {
    for (const item of listOf(usage[field])) {
      const modality = textOf(objectOf(item)?.['modality'])
      if (!modality) continue
      const name = side + modality[0]!.toUpperCase() + modality.slice(1).toLowerCase()
      tokensByModality ??= {}
      tokensByModality[name] =
        (tokensByModality[name] ?? 0) + (numberOf(objectOf(item)?.['tokenCount']) ?? 0)
    }
  }
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cacheReadTokens: count('cachedContentTokenCount'),
    cacheWriteTokens: 0,
    reasoningTokens: thoughts,
    tokensByModality,
    raw: usage,
  }
}

const details = {
  promptTokensDetails: 'input',
  toolUsePromptTokensDetails: 'input',
  candidatesTokensDetails: 'output',
}

/** Writes usage in the API's format, for servers that speak this format. */
export function fromUsage(usage: TokenUsage): JsonObject {
  const { inputTokens, outputTokens, totalTokens, cacheReadTokens, reasoningTokens } = usage
  return {
    promptTokenCount: inputTokens,
    candidatesTokenCount: outputTokens - (reasoningTokens ?? 0),
    thoughtsTokenCount: reasoningTokens,
    cachedContentTokenCount: cacheReadTokens || undefined,
    totalTokenCount: totalTokens,
  }
}
