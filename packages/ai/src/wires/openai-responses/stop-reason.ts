import type { JsonObject } from '@skein/base'
import { StopReason } from '../../contract/event.ts'
import { objectOf, textOf } from '../read-json.ts'

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
