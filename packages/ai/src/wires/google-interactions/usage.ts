import type { JsonObject } from '@skein/base'
import type { TokenUsage } from '../../contract/turn.ts'
import { listOf, numberOf, objectOf, textOf } from '../read-json.ts'

/**
 * Reads the usage. The API counts thoughts and the results of its own tools separately; here thoughts
 * are added to the output and tool results to the input.
 */
export function toUsage(usage: JsonObject): TokenUsage {
  const count = (name: string): number => numberOf(usage[name]) ?? 0
  const inputTokens = count('total_input_tokens') + count('total_tool_use_tokens')
  const outputTokens = count('total_output_tokens') + count('total_thought_tokens')
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cacheReadTokens: count('total_cached_tokens'),
    cacheWriteTokens: 0,
    reasoningTokens: numberOf(usage['total_thought_tokens']),
    tokensByModality: modalitiesOf(usage),
    raw: usage,
  }
}

const sides = {
  input_tokens_by_modality: 'input',
  tool_use_tokens_by_modality: 'input',
  output_tokens_by_modality: 'output',
}

function modalitiesOf(usage: JsonObject): Record<string, number> | undefined {
  let tokens: Record<string, number> | undefined
  for (const [field, side] of Object.entries(sides))
    for (const item of listOf(usage[field])) {
      const { modality, tokens: count } = objectOf(item) ?? {}
      const word = textOf(modality)
      if (!word) continue
      const name = side + word[0]!.toUpperCase() + word.slice(1).toLowerCase()
      tokens ??= {}
      tokens[name] = (tokens[name] ?? 0) + (numberOf(count) ?? 0)
    }
  return tokens
}

/** Writes usage in the API's format, for servers that speak this format. */
export function fromUsage(usage: TokenUsage): JsonObject {
  const { inputTokens, outputTokens, totalTokens, cacheReadTokens, reasoningTokens = 0 } = usage
  return {
    total_input_tokens: inputTokens,
    total_output_tokens: outputTokens - reasoningTokens,
    total_thought_tokens: reasoningTokens,
    total_cached_tokens: cacheReadTokens,
    total_tokens: totalTokens,
  }
}
