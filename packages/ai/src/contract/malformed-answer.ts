import type { StopReason } from './event.ts'
import type { ToolCall } from './tool.ts'
import type { Warning } from './turn.ts'

/** Gemini's reasons for an answer of its model that it could not read, e.g. a call that is no JSON. */
const malformed = /^(MALFORMED_|UNEXPECTED_TOOL_CALL$)/

/** How an answer ended, and the calls in it. */
interface EndedAnswer {
  readonly stopReason: StopReason
  readonly rawStopReason?: string | undefined
  readonly response: { readonly toolCalls?: readonly ToolCall[] | undefined }
}

/** True if the vendor could not read what its model wrote. Asking again often helps. */
export function isMalformed({ stopReason, rawStopReason = '', response }: EndedAnswer): boolean {
  return stopReason === 'other' && malformed.test(rawStopReason) && !response.toolCalls?.length
}

/** Makes the warning about such an answer. */
export function malformedAnswer({ rawStopReason }: EndedAnswer): Warning {
  return {
    code: 'malformed_answer',
    message: `The vendor could not read its model's answer (${rawStopReason}).`,
  }
}
