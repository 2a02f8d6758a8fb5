import type { JsonObject } from '@skein/base'
import type { TokenUsage } from '../../contract/turn.ts'
import { numberOf } from '../read-json.ts'

const usageFields = [
  'total_duration',
  'load_duration',
  'prompt_eval_count',
  'prompt_eval_duration',
  'eval_count',
  'eval_duration',
]

/** The fields of an answer that are its usage. */
export const usageFieldNames: ReadonlySet<string> = new Set(usageFields)

/** Reads the usage. The count of a completely cached prompt may be missing; it then counts as 0. */
export function toUsage(response: JsonObject): TokenUsage {
  const inputTokens = numberOf(response['prompt_eval_count']) ?? 0
  const outputTokens = numberOf(response['eval_count']) ?? 0
  const reportedFields = usageFields.filter((field) => response[field] !== undefined)
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    raw: Object.fromEntries(reportedFields.map((field) => [field, response[field]!])),
  }
}

/** Writes usage for servers that speak this format. Durations are unknown here and sent as 0. */
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
