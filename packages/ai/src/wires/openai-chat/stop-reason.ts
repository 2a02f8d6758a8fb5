import { StopReason } from '../../contract/event.ts'

/** Words of OpenAI, Mistral, Together and others for why an answer ended. */
const stopReasons: ReadonlyMap<string, StopReason> = new Map([
  ['stop', StopReason.EndTurn],
  ['eos', StopReason.EndTurn],
  ['end_turn', StopReason.EndTurn],
  ['length', StopReason.MaxTokens],
  ['max_tokens', StopReason.MaxTokens],
  ['model_length', StopReason.ContextWindow],
  ['tool_calls', StopReason.ToolUse],
  ['function_call', StopReason.ToolUse],
  ['content_filter', StopReason.ContentFilter],
  ['stop_sequence', StopReason.StopSequence],
])

/** The vendor gave up in the middle; what came so far is not an answer. */
export const failureReasons: ReadonlySet<string> = new Set([
  'error',
  'insufficient_system_resource',
])

export interface Ending {
  readonly raw: string | undefined
  readonly hasCalls: boolean
  readonly hasRefusal: boolean
}

export function toStopReason({ raw, hasCalls, hasRefusal }: Ending): StopReason {
  const reason = (raw !== undefined && stopReasons.get(raw)) || StopReason.Other
  const isPlainEnd = reason === StopReason.EndTurn || reason === StopReason.Other
  // Some servers say "stop" behind tool calls; callers should not have to know which.
  if (isPlainEnd && hasCalls) return StopReason.ToolUse
  return isPlainEnd && hasRefusal ? StopReason.Refusal : reason
}

/** The other direction, for the server half. */
export function fromStopReason(reason: StopReason): string {
  switch (reason) {
    case StopReason.MaxTokens:
    case StopReason.ContextWindow:
      return 'length'
    case StopReason.ToolUse:
      return 'tool_calls'
    case StopReason.ContentFilter:
      return 'content_filter'
    default:
      return 'stop'
  }
}
