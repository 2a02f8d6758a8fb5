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
  const outputTokens = outputOf(raw, inputTokens, reasoningTokens, total)
  const tokensByModality = modalities(input, output)
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
    ...(reasoningTokens !== undefined && { reasoningTokens }),
    ...(tokensByModality && { tokensByModality }),
    ...(costUsd !== undefined && { costUsd }),
    raw,
  }
}

/** xAI leaves reasoning out of `completion_tokens`; the total gives it away. */
function outputOf(
  raw: JsonObject,
  inputTokens: number,
  reasoningTokens: number | undefined,
  total: number | undefined,
): number {
  const told = numberOf(raw['completion_tokens']) ?? 0
  const isApart = reasoningTokens && total === inputTokens + told + reasoningTokens
  return isApart ? told + reasoningTokens : told
}

const modalityFields: readonly (readonly ['input' | 'output', string, string])[] = [
  ['input', 'audio_tokens', 'inputAudio'],
  ['input', 'image_tokens', 'inputImage'],
  ['input', 'video_tokens', 'inputVideo'],
  ['output', 'audio_tokens', 'outputAudio'],
  ['output', 'image_tokens', 'outputImage'],
]

function modalities(
  input: JsonObject | undefined,
  output: JsonObject | undefined,
): Record<string, number> | undefined {
  let counts: Record<string, number> | undefined
  for (const [side, field, name] of modalityFields) {
    const count = numberOf((side === 'input' ? input : output)?.[field])
    if (count) (counts ??= {})[name] = count
  }
  return counts
}

/** The other direction, for the server half. */
export function fromUsage(usage: TokenUsage): JsonObject {
  const { tokensByModality: modality = {}, reasoningTokens, costUsd } = usage
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.totalTokens,
    prompt_tokens_details: {
      cached_tokens: usage.cacheReadTokens,
      ...(usage.cacheWriteTokens > 0 && { cache_write_tokens: usage.cacheWriteTokens }),
      ...(modality['inputAudio'] && { audio_tokens: modality['inputAudio'] }),
      ...(modality['inputImage'] && { image_tokens: modality['inputImage'] }),
      ...(modality['inputVideo'] && { video_tokens: modality['inputVideo'] }),
    },
    completion_tokens_details: {
      ...(reasoningTokens !== undefined && { reasoning_tokens: reasoningTokens }),
      ...(modality['outputAudio'] && { audio_tokens: modality['outputAudio'] }),
      ...(modality['outputImage'] && { image_tokens: modality['outputImage'] }),
    },
    ...(costUsd !== undefined && { cost: costUsd }),
  }
}
