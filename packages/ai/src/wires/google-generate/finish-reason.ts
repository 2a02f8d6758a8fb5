import { StopReason } from '../../contract/event.ts'

const reasons: Readonly<Record<string, StopReason>> = {
  STOP: StopReason.EndTurn,
  MAX_TOKENS: StopReason.MaxTokens,
  SAFETY: StopReason.ContentFilter,
  RECITATION: StopReason.ContentFilter,
  BLOCKLIST: StopReason.ContentFilter,
  PROHIBITED_CONTENT: StopReason.ContentFilter,
  SPII: StopReason.ContentFilter,
  IMAGE_SAFETY: StopReason.ContentFilter,
  IMAGE_PROHIBITED_CONTENT: StopReason.ContentFilter,
  IMAGE_RECITATION: StopReason.ContentFilter,
  /** The request is sent again with `continuationToken`; see the request half. */
  CONTINUATION: StopReason.Pause,
}

/** Everything else (LANGUAGE, MALFORMED_FUNCTION_CALL, NO_IMAGE, …) ended for a reason of its own. */
export function stopReasonOf(finishReason: string, hasCalls: boolean): StopReason {
  const reason = Object.hasOwn(reasons, finishReason) ? reasons[finishReason] : undefined
  if (reason === StopReason.EndTurn && hasCalls) return StopReason.ToolUse
  return reason ?? StopReason.Other
}

/** The other direction, for the server half. */
export function finishReasonOf(reason: StopReason): string {
  switch (reason) {
    case 'max_tokens':
    case 'context_window':
      return 'MAX_TOKENS'
    case 'content_filter':
    case 'refusal':
      return 'SAFETY'
    case 'other':
      return 'OTHER'
    default:
      return 'STOP'
  }
}
