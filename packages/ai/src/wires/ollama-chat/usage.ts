import type { JsonObject } from '@skein/base'
import type { TokenUsage } from '../../contract/turn.ts'
import { numberOf } from '../read-json.ts'

/** Counts and durations (in nanoseconds) that stand in the last line. */
const usageFields = [
  'total_duration',
  'load_duration',
  'prompt_eval_count',
  'prompt_eval_duration',
  'eval_count',
  'eval_duration',
]

/** A prompt that is cached as a whole may be reported without a count. */
export function toUsage(response: JsonObject): TokenUsage {
  const inputTokens = numberOf(response['prompt_eval_count']) ?? 0
  const outputTokens = numberOf(response['eval_count']) ?? 0
  const told = usageFields.filter((field) => response[field] !== undefined)
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    raw: Object.fromEntries(told.map((field) => [field, response[field]!])),
  }
}

/** The other direction, for the server half. Durations are not ours to tell. */
export function fromUsage({ inputTokens, outputTokens }: TokenUsage): JsonObject {
  return {
    total_duration: 0,
    load_duration: 0,
    prompt_eval_count: inputTokens,
    prompt_eval_duration: 0,
    eval_count: outputTokens,
    eval_duration: 0,
  }
}

/** True for fields that `toUsage` reads. */
export const usageFieldNames: ReadonlySet<string> = new Set(usageFields)
