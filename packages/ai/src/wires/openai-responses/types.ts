import type { AcceptedSettings } from '../../contract/accepted-settings.ts'
import { countOf, numberOf, objectOf, textOf } from '../read-json.ts'
import { StopReason } from '../../contract/event.ts'
import { zeroUsage, type TokenUsage } from '../../contract/turn.ts'
import type { ToolCallIdRule } from '../tool-call-id.ts'
import type { JsonObject, JsonValue } from '@skein/base'

/** A vendor's differences from OpenAI's Responses. Parameters are not part of it. */
export interface OpenAIResponsesDialect {
  /**
   * Kinds of input that the vendor accepts besides text. Other kinds are rejected before a request is
   * sent.
   */
  readonly media: readonly ('image' | 'document' | 'audio' | 'video')[]
  /** The ids that the vendor accepts. Other ids are replaced by their hash. */
  readonly toolCallId: ToolCallIdRule
  /** Returns the settings that a model accepts; undefined if nothing is known, so that all are sent as they are. */
  readonly accepts?: (modelId: string) => AcceptedSettings | undefined
}

/** The dialect of OpenAI itself. */
export const responsesDialect: OpenAIResponsesDialect = {
  media: ['image', 'document'],
  toolCallId: { pattern: /^[^]+$/, maxLength: 64 },
}

/**
 * An event of a Responses stream of any type; `type` decides which fields are present. Every field is
 * checked where it is read.
 */
export interface ResponsesEvent {
  readonly type?: string
  readonly response?: JsonObject
  readonly item?: JsonObject
  readonly item_id?: string
  readonly output_index?: number
  readonly content_index?: number
  readonly summary_index?: number
  readonly delta?: string
  readonly text?: string
  readonly refusal?: string
  readonly arguments?: string
  readonly input?: string
  readonly part?: JsonObject
  readonly annotation?: JsonValue
  readonly partial_image_b64?: string
  readonly output_format?: string
  readonly error?: JsonValue
}

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

/** Reads how a response ended. A status that is not an end (`queued`) becomes the raw stop reason. */
export function endOfResponse(
  response: JsonObject,
  { hasCalls, hasRefusal }: { hasCalls: boolean; hasRefusal: boolean },
): { readonly stopReason: StopReason; readonly rawStopReason: string } {
  const status = textOf(response['status']) ?? 'completed'
  if (status === 'incomplete') {
    const raw = textOf(objectOf(response['incomplete_details'])?.['reason']) ?? status
    if (raw === 'max_output_tokens') return { stopReason: StopReason.MaxTokens, rawStopReason: raw }
    const isFiltered = raw === 'content_filter'
    const stopReason = isFiltered ? StopReason.ContentFilter : StopReason.Other
    return { stopReason, rawStopReason: raw }
  }
  if (status !== 'completed') return { stopReason: StopReason.Other, rawStopReason: status }
  if (hasCalls) return { stopReason: StopReason.ToolUse, rawStopReason: status }
  const stopReason = hasRefusal ? StopReason.Refusal : StopReason.EndTurn
  return { stopReason, rawStopReason: status }
}

/** Returns why an answer with this stop reason is incomplete, for servers; undefined if it is complete. */
export function incompleteReason(stopReason: StopReason | undefined): string | undefined {
  switch (stopReason) {
    case StopReason.MaxTokens:
    case StopReason.ContextWindow:
      return 'max_output_tokens'
    case StopReason.ContentFilter:
      return 'content_filter'
    default:
      return undefined
  }
}
