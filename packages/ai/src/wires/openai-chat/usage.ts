import type { JsonObject } from '@skein/base'
import { zeroUsage, type TokenUsage } from '../../contract/turn.ts'
import { numberOf, objectOf } from '../read-json.ts'

/** Reads `usage` of Chat Completions, with the extra fields of DeepSeek, Moonshot, xAI and OpenRouter. */
export function toUsage(raw: JsonObject | undefined): TokenUsage {
  if (!raw) return zeroUsage
  const input = objectOf(raw['prompt_tokens_details'])
  const output = objectOf(raw['completion_tokens_details'])
  const inputTokens = numberOf(raw['prompt_tokens']) ?? 0
  const reasoningTokens = numberOf(output?.['reasoning_tokens'])
  const total = numberOf(raw['total_tokens'])
  // xAI does not count reasoning in `completion_tokens`: its total is the sum of all three counts.
  const completion = numberOf(raw['completion_tokens']) ?? 0
  const isApart = reasoningTokens && total === inputTokens + completion + reasoningTokens
  const outputTokens = isApart ? completion + reasoningTokens : completion
  let tokensByModality: Record<string, number> | undefined
  for (const [side, field, name] of modalityFields) {
    const count = numberOf((side === 'input' ? input : output)?.[field])
    if (count) (tokensByModality ??= {})[name] = count
  }
  const costUsd = numberOf(raw['cost'])
  return {
    inputTokens,
    outputTokens,
    totalTokens: total ?? inputTokens + outputTokens,
    cacheReadTokens:
      numberOf(input?.['cached_tokens']) ??
      numberOf(raw['prompt_cache_hit_tokens']) ??
      numberOf(raw['cached_tokens']) ??
      0,
    cacheWriteTokens: numberOf(input?.['cache_write_tokens']) ?? 0,
    reasoningTokens,
    tokensByModality,
    costUsd,
    raw,
  }
}

const modalityFields: readonly (readonly ['input' | 'output', string, string])[] = [
  ['input', 'audio_tokens', 'inputAudio'],
  ['input', 'image_tokens', 'inputImage'],
  ['input', 'video_tokens', 'inputVideo'],
  ['output', 'audio_tokens', 'outputAudio'],
  ['output', 'image_tokens', 'outputImage'],
]

/** Writes usage in OpenAI's format, for servers that speak this format. */
export function fromUsage(usage: TokenUsage): JsonObject {
  const { tokensByModality: modality = {}, reasoningTokens, costUsd } = usage
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.totalTokens,
    prompt_tokens_details: {
      cached_tokens: usage.cacheReadTokens,
      cache_write_tokens: usage.cacheWriteTokens || undefined,
      audio_tokens: modality['inputAudio'] || undefined,
      image_tokens: modality['inputImage'] || undefined,
      video_tokens: modality['inputVideo'] || undefined,
    },
    completion_tokens_details: {
      reasoning_tokens: reasoningTokens,
      audio_tokens: modality['outputAudio'] || undefined,
      image_tokens: modality['outputImage'] || undefined,
    },
    cost: costUsd,
  }
}
